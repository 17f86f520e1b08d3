{% if execute %}{% set one = run_query('show tables').columns[0].values()[0] %}{% endif %}
select '{{ one }}' as one
