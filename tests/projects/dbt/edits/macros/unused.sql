{% macro unused(column) %}abs({{ column }}){% endmacro %}
