{% if execute %}{% set one = run_query('select 1 as one').columns[0].values()[0] %}{% endif %}
select {{ one }} as one
