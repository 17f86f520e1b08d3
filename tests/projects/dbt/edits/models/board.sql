{{ config(materialized='view') }}
select code, total from {{ ref('report') }}
