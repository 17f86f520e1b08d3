{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', file_format='delta') }}
select id, {{ tools.upper_name('name') }} as name, team from {{ source('raw', 'people') }}
