{{ config(materialized='ephemeral') }}
select id, day, code, {{ cents('price') }} as cents from {{ source('raw', 'items') }}
