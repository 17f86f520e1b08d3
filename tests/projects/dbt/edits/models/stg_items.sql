{{ config(materialized='ephemeral') }}
select id, day, code, price, {{ cents('price') }} as cents
from {{ source('raw', 'items') }}
where price >= {{ var('min_price') }}
