{% macro upper_name(column) %}upper({{ column }}){% endmacro %}

{% macro not_used(column) %}lower({{ column }}){% endmacro %}
