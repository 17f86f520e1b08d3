{% snapshot prices %}
{{ config(strategy='check', unique_key='id', check_cols=['price'], file_format='delta') }}
select id, code, price from {{ source('raw', 'items') }}
{% endsnapshot %}
