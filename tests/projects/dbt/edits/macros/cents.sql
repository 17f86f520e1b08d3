{% macro cents(column, factor=100) %}{{ column }} * {{ factor }}{% endmacro %}
