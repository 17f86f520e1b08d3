select * from {{ ref('daily') }} where cents < 0
