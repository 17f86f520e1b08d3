{{ config(materialized='incremental', incremental_strategy='append') }}
select id, day, cents from {{ ref('stg_items') }}
{% if is_incremental() %}
where day > (select max(day) from {{ this }})
{% endif %}
