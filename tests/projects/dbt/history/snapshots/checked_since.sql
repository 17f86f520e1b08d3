{% snapshot checked_since %}
{{ config(strategy='check', unique_key='id', check_cols=['name'], updated_at='at', invalidate_hard_deletes=true) }}
select id, upper(name) as name, at from {{ source('raw', 'people') }}
where id <> 2
{% endsnapshot %}
