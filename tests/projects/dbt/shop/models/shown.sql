{{ config(materialized='view') }}
select day, items from {{ ref('total') }} where items > 0
