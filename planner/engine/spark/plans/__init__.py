"""Plans of Spark as data: equivalent ones in one form, and the differences between others."""
