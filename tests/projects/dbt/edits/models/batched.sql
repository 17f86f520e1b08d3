{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day', begin='2026-01-01',
          batch_size='day', lookback=1, partition_by=['day']) }}
select id, code, price, day from {{ source('raw', 'items') }}
