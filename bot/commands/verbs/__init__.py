"""The commands, one file each: form, arguments, who may use it, what it starts, its reply, when it is offered. Pure."""
