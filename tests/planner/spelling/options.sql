-- Queries with the optional pieces of Spark's grammar: `[[x]]` is with and without x, `{{x ;; y}}` is x or y.

-- grouping
SELECT id, n, COUNT(*) AS v FROM s.o GROUP BY id, n[[,]] GROUPING SETS ((id), (n){{ ;; , () ;; , (id, n) ;; , (id)}})
SELECT id, n, COUNT(*) AS v FROM s.o[[ WHERE n > 5]] GROUP BY id[[, n]][[,]] {{GROUPING SETS (id, (id, n)) ;; ROLLUP (id, n) ;; CUBE (id, n) ;; WITH ROLLUP ;; WITH CUBE}}
SELECT o.id, o.n, COUNT(*) AS v FROM s.o JOIN s.e ON o.id = e.id GROUP BY o.id, o.n[[,]] GROUPING SETS ((o.id), (o.n))
SELECT o.id, o.n, COUNT(*) AS v FROM s.o LEFT JOIN s.t ON o.id = t.id GROUP BY o.id, o.n[[,]] GROUPING SETS ((o.id), (o.n))
SELECT id, n, s, COUNT(*) AS v FROM s.o GROUP BY {{id, n, s ;; id, (n, s) ;; (id, n), s ;; (id), n, s ;; (id, n, s) ;; s, n, id}}[[ {{WITH ROLLUP ;; WITH CUBE}}]]
SELECT id, n, s, COUNT(*) AS v FROM s.o GROUP BY {{ROLLUP ;; CUBE ;; GROUPING SETS}} ({{id, n, s ;; id, (n, s) ;; (id, n), s ;; (id, n, s) ;; (id), (n), (s) ;; (id, n), (s), () ;; s, n, id}})
SELECT id, n, s, GROUPING_ID() AS g, COUNT(*) AS v FROM s.o GROUP BY {{ROLLUP (n), id, s ;; id, ROLLUP (n), s ;; id, s, ROLLUP (n) ;; CUBE (n), ROLLUP (id), s ;; ROLLUP (id), CUBE (n), s ;; id, n, s, GROUPING SETS ((id), (n)) ;; n, id, s, GROUPING SETS ((id), (n)) ;; id, n, s GROUPING SETS ((id), (n)) ;; n, s, id GROUPING SETS ((id), (n)) ;; GROUPING SETS ((id), (n), (s)) ;; GROUPING SETS ((n), (id), (s))}}
SELECT id, n, s, COUNT(*) AS v FROM s.o GROUP BY {{id, ROLLUP (n), ROLLUP (s) ;; id, ROLLUP (n, s) ;; id, ROLLUP (n), s ;; ROLLUP (id), n, s ;; id, GROUPING SETS (n, ROLLUP (s)) ;; id, GROUPING SETS (n, s) ;; id, GROUPING SETS (ROLLUP (n, s)) ;; id, GROUPING SETS (GROUPING SETS (n, s)) ;; id, GROUPING SETS (n, GROUPING SETS (s)) ;; ROLLUP (id), CUBE (n), s ;; CUBE (n), ROLLUP (id), s ;; id, n, s, ROLLUP (id) ;; ROLLUP (n), id, s ;; id, CUBE (n, s) ;; id, CUBE (n), CUBE (s) ;; id, GROUPING SETS (CUBE (n, s)) ;; id, GROUPING SETS (n, CUBE (s)) ;; id, n, ROLLUP (s) ;; id, s, ROLLUP (n)}}
SELECT id, COUNT(*) AS v FROM s.o GROUP BY GROUPING SETS ({{(id) ;; (id), (id) ;; (id), () ;; () ;; (id), (), () ;; id, id}})
SELECT {{COUNT(*) AS v ;; MAX(n) AS v}} FROM s.e[[ GROUP BY {{() ;; GROUPING SETS (()) ;; GROUPING SETS ((), ()) ;; ALL ;; id}}]]
SELECT id AS k, COUNT(*) AS v FROM s.o GROUP BY {{ALL ;; id ;; k ;; 1 ;; (id) ;; id, id ;; '1'}}[[ HAVING COUNT(*) > 1]]
SELECT 1 AS k[[, COUNT(*) AS v]] FROM s.e[[ GROUP BY {{1 ;; ALL ;; id}}]][[ HAVING TRUE]]

SELECT id, n, GROUPING(n) AS g FROM s.o GROUP BY {{id, n GROUPING SETS ((id), (n)) ;; n, id GROUPING SETS ((id), (n)) ;; GROUPING SETS ((id), (n)) ;; GROUPING SETS ((n), (id)) ;; id, n, GROUPING SETS ((id), (n))}}
FROM s.o SELECT id, COUNT(*) AS v GROUP BY id, n[[,]] GROUPING SETS ((id), (n))[[ HAVING COUNT(*) > 0]]

-- select lists
SELECT [[{{DISTINCT ;; ALL}} ]]n{{ ;; , s ;; s ;; AS s ;; AS (s)}} FROM s.o
SELECT {{* ;; o.* ;; *, id AS q ;; id AS q, * ;; * EXCEPT (id) ;; o.* EXCEPT (id) ;; * EXCEPT (id, n) ;; *, * EXCEPT (id, n, s)}} FROM s.o
SELECT COUNT({{* ;; DISTINCT * ;; n ;; DISTINCT n ;; ALL n ;; n, s ;; DISTINCT n, s ;; o.* ;; * EXCEPT (id) ;; (n, s) ;; DISTINCT (n, s)}}) AS v FROM s.o
SELECT [[/*+ {{BROADCAST(o) ;; COALESCE(1), BROADCAST(o) ;; REPARTITION(3, id)}} */ ]]id FROM s.o
SELECT STRUCT({{n, s ;; n AS s, s AS n ;; n AS N, s ;; * ;; o.*}}).n AS v FROM s.o
SELECT TO_JSON({{STRUCT(n, s) ;; STRUCT(n AS a, s) ;; (n, s) ;; (n AS a, s) ;; STRUCT(*) ;; STRUCT(o.*) ;; STRUCT(o) ;; o}}) AS v FROM s.o
SELECT id, {{EXPLODE ;; EXPLODE_OUTER}}(arr){{ ;; AS e ;; AS (e) ;; e}} FROM s.t
SELECT id, POSEXPLODE(arr){{ ;; AS (p, e) ;; AS (e, p)}} FROM s.t

-- joined tables
SELECT o.id[[, e.n AS v]] FROM s.o {{JOIN ;; INNER JOIN ;; CROSS JOIN ;; LEFT JOIN ;; LEFT OUTER JOIN ;; RIGHT JOIN ;; FULL JOIN ;; SEMI JOIN ;; LEFT SEMI JOIN ;; ANTI JOIN ;; LEFT ANTI JOIN}} s.e[[ ON o.id = e.id]]
SELECT n FROM s.o {{JOIN ;; LEFT JOIN ;; RIGHT JOIN ;; FULL JOIN ;; SEMI JOIN ;; ANTI JOIN ;; NATURAL JOIN ;; NATURAL LEFT JOIN ;; NATURAL RIGHT JOIN ;; NATURAL FULL JOIN ;; NATURAL SEMI JOIN ;; NATURAL ANTI JOIN}} (SELECT id, s FROM s.e) q[[ USING ({{id ;; id, s}})]]
SELECT o.id FROM s.o {{,  ;; JOIN  ;; LEFT JOIN  ;; CROSS JOIN }}[[LATERAL ]](SELECT e.n AS v FROM s.e[[ WHERE e.id = 3]]) q
SELECT o.id, z.v FROM s.o{{, ;;  JOIN ;;  LEFT JOIN ;;  CROSS JOIN ;;  INNER JOIN}} LATERAL (SELECT COUNT(*) AS v FROM s.e WHERE e.id = o.id) AS z[[ ON {{z.v > 0 ;; TRUE}}]]
SELECT o.id FROM {{s.o JOIN s.e ON o.id = e.id LEFT JOIN s.t ON t.id = o.id ;; s.o JOIN (s.e LEFT JOIN s.t ON t.id = e.id) ON o.id = e.id ;; (s.o JOIN s.e ON o.id = e.id) LEFT JOIN s.t ON t.id = o.id ;; s.o JOIN s.e LEFT JOIN s.t ON t.id = e.id ON o.id = e.id ;; s.o LEFT JOIN s.t ON t.id = o.id JOIN s.e ON o.id = e.id ;; s.t RIGHT JOIN s.o ON t.id = o.id JOIN s.e ON o.id = e.id}}
SELECT o.id FROM {{s.o, s.e JOIN s.t ON t.id = e.id ;; s.o, (s.e JOIN s.t ON t.id = e.id) ;; (s.o, s.e) JOIN s.t ON t.id = e.id ;; s.e JOIN s.t ON t.id = e.id, s.o ;; s.o, s.e LEFT JOIN s.t ON t.id = e.id ;; s.o CROSS JOIN s.e LEFT JOIN s.t ON t.id = e.id ;; s.o, s.e FULL JOIN s.t ON t.id = e.id ;; s.o, s.e, s.t}}
SELECT q.* FROM {{s.o AS q ;; s.o q ;; (s.o) AS q ;; (s.o) q ;; (s.o AS q) ;; (SELECT * FROM s.o) AS q ;; (TABLE s.o) AS q ;; (FROM s.o) AS q ;; s.o AS q(a, b, c, e) ;; s.o q(e, c, b, a)}}
SELECT id FROM (s.o JOIN s.e USING (id))[[ AS q]]
SELECT {{id ;; o.id ;; e.id ;; COALESCE(o.id, e.id)}} AS v FROM s.o {{JOIN ;; LEFT JOIN ;; RIGHT JOIN ;; FULL JOIN}} s.e USING (id)

-- views and samples
SELECT id, e FROM s.t LATERAL VIEW[[ OUTER]] {{EXPLODE ;; EXPLODE_OUTER}}({{arr ;; words ;; ARRAY(1, 2)}}) {{q AS e ;; q e ;; e}}
SELECT id, p, e FROM s.t LATERAL VIEW[[ OUTER]] POSEXPLODE(arr) q AS {{p, e ;; e, p}}
SELECT id, e, g FROM s.t LATERAL VIEW[[ OUTER]] EXPLODE(arr) q AS e LATERAL VIEW[[ OUTER]] EXPLODE(arr) r AS g
SELECT id FROM s.o[[ TABLESAMPLE ({{100 PERCENT ;; 50 PERCENT ;; 2 ROWS ;; 1 ROWS ;; BUCKET 1 OUT OF 2}})[[ REPEATABLE (7)]]]]
SELECT id FROM (SELECT id FROM s.o[[ LIMIT 2]])[[ TABLESAMPLE (2 ROWS)]][[ AS q]]
SELECT * FROM s.o PIVOT ({{SUM(n) ;; SUM(n) AS v ;; SUM(n) v ;; SUM(n) AS v, MAX(n) AS w}} FOR s IN ({{'a', 'B' ;; 'a' AS x, 'B' AS y ;; 'a' x, 'B' y ;; 'B', 'a' ;; 'a'}}))
SELECT * FROM s.o PIVOT (SUM(n) AS v FOR (s, id) IN ({{('a', 1) AS x, ('B', 3) AS y ;; ('a', 1) AS x ;; ('a', 3) AS x, ('B', 1) AS y}}))
SELECT * FROM (SELECT id, n FROM s.o) UNPIVOT[[ {{INCLUDE ;; EXCLUDE}} NULLS]] (v FOR k IN ({{id, n ;; n, id ;; id AS a, n AS b ;; id}}))[[ AS q]]
SELECT * FROM s.t UNPIVOT[[ {{INCLUDE ;; EXCLUDE}} NULLS]] ((v, w) FOR k IN ({{(id, n), (x, a) ;; (n, id), (x, a) ;; (id, n) AS g, (x, a) AS h ;; (id, n)}}))

-- windows and aggregates
SELECT id, SUM(n) OVER ([[{{PARTITION ;; DISTRIBUTE}} BY s ]][[{{ORDER ;; SORT}} BY id[[ DESC]] ]][[{{ROWS ;; RANGE}} {{UNBOUNDED PRECEDING ;; BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW ;; BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING ;; 1 PRECEDING ;; CURRENT ROW}}]]) AS v FROM s.o
SELECT id, SUM(n) OVER (CLUSTER BY {{s ;; s, id}}) AS v, SUM(n) OVER {{w ;; (w) ;; x ;; (ORDER BY id)}} AS z FROM s.o WINDOW w AS (PARTITION BY s[[ ORDER BY id]]), x AS (ORDER BY s)
SELECT id, {{LAG ;; LEAD ;; FIRST_VALUE ;; LAST_VALUE ;; FIRST ;; LAST ;; ANY_VALUE}}(n[[ IGNORE NULLS]])[[ {{IGNORE ;; RESPECT}} NULLS]] OVER (ORDER BY id, n) AS v FROM s.o
SELECT id, NTH_VALUE(n, 2)[[ {{IGNORE ;; RESPECT}} NULLS]] OVER (ORDER BY id, n[[ DESC]][[ NULLS {{FIRST ;; LAST}}]]) AS v FROM s.o
SELECT {{FIRST ;; LAST ;; ANY_VALUE ;; MAX}}(n{{ ;;  IGNORE NULLS ;; , TRUE ;; , FALSE}})[[ IGNORE NULLS]] AS v FROM s.o
SELECT SUM([[{{DISTINCT ;; ALL}} ]]n)[[ FILTER (WHERE n > 5)]][[ OVER ()]] AS v FROM s.o
SELECT LISTAGG([[DISTINCT ]]s[[, '-']])[[ WITHIN GROUP (ORDER BY s[[ DESC]])]][[ FILTER (WHERE n > 5)]] AS v FROM s.o
SELECT {{PERCENTILE_CONT ;; PERCENTILE_DISC ;; MODE}}({{0.5 ;; }}) WITHIN GROUP (ORDER BY n[[ DESC]])[[ FILTER (WHERE n > 5)]] AS v FROM s.o
SELECT {{PERCENTILE ;; APPROX_PERCENTILE ;; PERCENTILE_APPROX}}([[DISTINCT ]]n, 0.5{{ ;; , 2 ;; , 100}}) AS v FROM s.o
SELECT {{COLLECT_LIST ;; COLLECT_SET ;; ARRAY_AGG}}([[DISTINCT ]]n)[[ FILTER (WHERE n > 5)]] AS v FROM s.o
SELECT {{MODE(n ;; MAX_BY(s, n ;; MIN_BY(s, n ;; COUNT_MIN_SKETCH(n, 0.5, 0.5, 1 ;; COUNT_IF(n > 1 ;; HISTOGRAM_NUMERIC(n, 5 ;; APPROX_COUNT_DISTINCT(n}}{{ ;; , TRUE ;; , 0.1 ;; , 2}}) AS v FROM s.o

-- set operations and order
SELECT id, n FROM s.o {{UNION ;; EXCEPT ;; MINUS ;; INTERSECT}}[[ {{ALL ;; DISTINCT}}]][[ BY NAME]] SELECT n, id FROM s.o
SELECT id FROM s.o {{UNION ;; EXCEPT ;; INTERSECT ;; UNION ALL}} {{SELECT n FROM s.o INTERSECT SELECT id FROM s.e ;; (SELECT n FROM s.o INTERSECT SELECT id FROM s.e) ;; SELECT n FROM s.o EXCEPT SELECT id FROM s.e ;; (SELECT n FROM s.o EXCEPT SELECT id FROM s.e) ;; SELECT n FROM s.o UNION ALL SELECT id FROM s.o ;; (SELECT n FROM s.o UNION ALL SELECT id FROM s.o)}}
SELECT id FROM s.o UNION ALL {{SELECT n FROM s.o ORDER BY id LIMIT 2 ;; (SELECT n FROM s.o ORDER BY n LIMIT 2) ;; SELECT n FROM s.o LIMIT 2 ;; (SELECT n FROM s.o LIMIT 2) ;; SELECT n FROM s.o}}
{{SELECT id FROM s.o ;; (SELECT id FROM s.o) ;; TABLE s.o ;; FROM s.o ;; (TABLE s.o) ;; (FROM s.o) ;; FROM s.o SELECT id ;; VALUES (1) ;; SELECT * FROM VALUES (1)}} [[{{UNION ;; UNION ALL ;; EXCEPT}} {{SELECT n FROM s.o ;; TABLE s.e ;; FROM s.e SELECT id ;; VALUES (1)}}]]
SELECT id FROM s.o [[{{ORDER ;; SORT ;; CLUSTER ;; DISTRIBUTE}} BY {{id ;; id DESC ;; id, n ;; ALL ;; ALL DESC ;; 1}} ]][[LIMIT {{2 ;; ALL ;; 1 + 1}} ]][[OFFSET 1]]
SELECT id FROM s.o ORDER BY n[[ {{ASC ;; DESC}}]][[ NULLS {{FIRST ;; LAST}}]], id LIMIT 2
SELECT id FROM (SELECT id, n FROM s.o[[ {{ORDER BY n ;; SORT BY n ;; DISTRIBUTE BY n ;; CLUSTER BY n ;; DISTRIBUTE BY n SORT BY n}}]][[ LIMIT 3]])
SELECT id FROM s.o WHERE n {{> ;; =}} {{ANY ;; SOME ;; ALL}} (SELECT n FROM s.e)

-- names of queries
WITH[[ RECURSIVE]] r[[(k)]] AS (SELECT 1 AS k UNION ALL SELECT {{k + 1 FROM r WHERE k < 3 ;; 2}}) SELECT k FROM r
WITH RECURSIVE r(k)[[ MAX RECURSION LEVEL {{2 ;; 5}}]] AS (SELECT 1 UNION[[ ALL]] SELECT k + 1 FROM r WHERE k < 4) SELECT k FROM r
WITH c[[(n, id)]] AS (SELECT id, n FROM s.o){{ ;; , d AS (SELECT n AS id FROM c) ;; , o AS (SELECT 1 AS id)}} SELECT id FROM {{c ;; d ;; o ;; s.o}}
{{WITH c AS (SELECT 1 AS id) SELECT id FROM c UNION ALL SELECT n FROM s.o ;; (WITH c AS (SELECT 1 AS id) SELECT id FROM c) UNION ALL SELECT n FROM s.o ;; WITH c AS (SELECT 1 AS id) (SELECT id FROM c UNION ALL SELECT n FROM s.o)}}[[ LIMIT 1]]
WITH c AS (SELECT 1 AS id) {{FROM c SELECT id ;; SELECT id FROM c ;; FROM c ;; TABLE c ;; FROM c |> SELECT id ;; FROM s.o SELECT id ;; FROM s.o |> SELECT id ;; FROM s.o}}
SELECT {{id ;; o.id ;; s.o.id ;; `id` ;; "id" ;; 'id' ;; o.`id` ;; ID}}{{ ;; AS v ;; v ;; AS `v` ;; AS V}} FROM s.o
SELECT {{col1 ;; col2 ;; *}} FROM VALUES {{(1, 2) ;; (1, 2), (3, 4) ;; 1, 2 ;; ((1, 2))}}[[ AS q[[({{col1, col2 ;; col2, col1}})]]]]

-- optional words of values
SELECT {{INTERVAL ;; }} {{1 ;; '1' ;; -1 ;; '-1' ;; - '1' ;; + 1}} {{DAY ;; DAYS ;; HOUR ;; MONTH ;; day}} AS v FROM s.e
SELECT INTERVAL {{'1-2' YEAR TO MONTH ;; '1 2' DAY TO HOUR ;; '1 2:3' DAY TO MINUTE ;; '1 2:3:4' DAY TO SECOND ;; '2:3' HOUR TO MINUTE ;; '2:3' MINUTE TO SECOND ;; - '1-2' YEAR TO MONTH ;; '-1-2' YEAR TO MONTH ;; '1 day 2 hours' ;; '1' DAY '2' HOUR ;; 1 DAY 2 HOURS ;; 1 DAY -2 HOURS}} AS v FROM s.o
SELECT TYPEOF(CAST(NULL AS {{INTERVAL ;; INTERVAL DAY ;; INTERVAL DAY TO SECOND ;; INTERVAL DAY TO HOUR ;; INTERVAL YEAR ;; INTERVAL YEAR TO MONTH ;; INTERVAL MONTH ;; INTERVAL HOUR TO SECOND ;; DECIMAL ;; DECIMAL(10) ;; DECIMAL(10, 0) ;; DECIMAL(10, 2) ;; DEC ;; TIMESTAMP ;; TIMESTAMP_NTZ ;; TIMESTAMP_LTZ ;; VARCHAR(3) ;; CHAR(3) ;; CHARACTER(3) ;; STRING ;; STRING COLLATE UTF8_LCASE ;; STRING COLLATE UTF8_BINARY ;; VOID ;; BINARY ;; FLOAT ;; REAL ;; DOUBLE ;; VARIANT ;; TIME ;; TIME(3) ;; TIME(6)}})) AS v FROM s.o
SELECT TO_JSON(CAST(NULL AS STRUCT<{{x: INT ;; x INT ;; X INT ;; x INT NOT NULL ;; x INT COMMENT 'c' ;; `x` INT ;; x INT, y STRING ;; y STRING, x INT ;; x ARRAY<INT> ;; x MAP<STRING, INT> ;; }}>)) AS v FROM s.o
SELECT s {{ ;; NOT}} {{LIKE ;; ILIKE ;; RLIKE ;; REGEXP}}[[ {{ANY ;; SOME ;; ALL}}]] {{'a%' ;; ('a%') ;; ('a%', 'b%') ;; 'a%' ESCAPE '!' ;; 'a%' ESCAPE '\\'}} AS v FROM s.o
SELECT n IS[[ NOT]] {{NULL ;; TRUE ;; FALSE ;; UNKNOWN ;; DISTINCT FROM id ;; DISTINCT FROM NULL}} AS v FROM s.o
SELECT b IS[[ NOT]] {{NULL ;; TRUE ;; FALSE ;; UNKNOWN ;; DISTINCT FROM TRUE}} AS v FROM s.t
SELECT n[[ NOT]] {{BETWEEN 1 AND 10 ;; BETWEEN 10 AND 1 ;; IN (1, 10) ;; IN ((1), 10) ;; IN (SELECT n FROM s.o) ;; IN ((SELECT MAX(n) FROM s.o)) ;; IN (NULL) ;; IN (1, NULL)}} AS v FROM s.o
SELECT {{NOT n = 1 AND id = 1 ;; NOT (n = 1 AND id = 1) ;; (NOT n = 1) AND id = 1 ;; ! n = 1 AND id = 1 ;; n = 1 OR id = 1 AND s = 'a' ;; (n = 1 OR id = 1) AND s = 'a'}} AS v FROM s.o
SELECT CASE[[ n]] WHEN {{1 ;; n = 1 ;; NULL}} THEN 'x'[[ WHEN 2 THEN 'y']][[ ELSE {{'z' ;; NULL}}]] END AS v FROM s.o
SELECT TRIM({{s ;; FROM s ;; BOTH FROM s ;; LEADING FROM s ;; TRAILING FROM s ;; 'a' FROM s ;; BOTH 'a' FROM s ;; LEADING 'a' FROM s ;; TRAILING 'a' FROM s ;; 'a', s ;; s, 'a'}}) AS v FROM s.o
SELECT {{SUBSTR ;; SUBSTRING}}(s{{, ;;  FROM}} 2{{ ;; , 1 ;;  FOR 1}}) AS v FROM s.o
SELECT OVERLAY(s{{ PLACING ;; ,}} 'x'{{ FROM ;; ,}} 2{{ ;;  FOR 1 ;; , 1}}) AS v FROM s.o
SELECT {{POSITION('a' IN s) ;; POSITION(s IN 'a') ;; POSITION('a', s) ;; POSITION('a', s, 2) ;; LOCATE('a', s) ;; LOCATE(s, 'a') ;; INSTR(s, 'a') ;; INSTR('a', s) ;; CHARINDEX('a', s) ;; CHARINDEX('a', s, 2)}} AS v FROM s.o
SELECT {{EXTRACT(DAY FROM d) ;; EXTRACT(MONTH FROM d) ;; EXTRACT(day FROM d) ;; DATE_PART('DAY', d) ;; DATEPART('DAY', d) ;; DAY(d) ;; DAYOFMONTH(d) ;; EXTRACT(DOW FROM d) ;; EXTRACT(DOY FROM d) ;; EXTRACT(WEEK FROM d) ;; EXTRACT(YEAROFWEEK FROM d) ;; EXTRACT(QUARTER FROM d)}} AS v FROM s.o
SELECT {{DATEADD ;; DATE_ADD ;; TIMESTAMPADD}}({{DAY, 1, d ;; DAY, n, d ;; MONTH, 1, d ;; d, 1 ;; WEEK, 1, d ;; HOUR, 1, d}}) AS v FROM s.o
SELECT {{DATEDIFF ;; DATE_DIFF ;; TIMESTAMPDIFF}}({{DAY, d, d ;; MONTH, d, DATE '2020-01-01' ;; MONTH, DATE '2020-01-01', d ;; d, DATE '2020-01-01' ;; DATE '2020-01-01', d}}) AS v FROM s.o
SELECT TRANSFORM(arr, {{x -> x + 1 ;; X -> x + 1 ;; (x) -> x + 1 ;; (x, i) -> x + i ;; (i, x) -> x + i ;; (x, i) -> x + 1 ;; a -> a + 1 ;; z -> a + 1 ;; z -> t.a + 1 ;; a -> t.a + 1}}) AS v FROM s.t
SELECT {{MASK(s) ;; MASK(s, 'X') ;; MASK(s, upperChar => 'X') ;; MASK(s, lowerChar => 'X') ;; MASK(upperChar => 'X', str => s) ;; MASK(s, NULL, 'X')}} AS v FROM s.o
SELECT {{a ;; t.a ;; st.x ;; t.st.x ;; st.X ;; (st).x ;; st['x'] ;; m.x ;; m['x'] ;; m['X'] ;; m.X ;; arr[0] ;; arr[1] ;; arr[0L]}} AS v FROM s.t
SELECT {{s ;; s COLLATE UTF8_LCASE ;; s COLLATE UTF8_BINARY ;; (s COLLATE UTF8_LCASE) ;; COLLATE(s, 'UTF8_LCASE')}} {{= ;; <=> ;; < ;; ||}} 'A' AS v FROM s.o
SELECT {{'a' ;; "a" ;; r'a' ;; 'a' '' ;; 'a ' ;; X'61' ;; DATE '2020-01-01' ;; TIMESTAMP '2020-01-01' ;; TIMESTAMP_NTZ '2020-01-01' ;; TIMESTAMP_LTZ '2020-01-01' ;; TIME '00:00:00' ;; '2020-01-01' ;; NULL ;; TRUE ;; 'TRUE'}} AS v FROM s.o
SELECT {{1 ;; 1L ;; 1S ;; 1Y ;; 1D ;; 1F ;; 1BD ;; 1.0 ;; 1.0BD ;; 1.00 ;; 1e0 ;; 1E0 ;; 1.0e0BD ;; 01 ;; '1' ;; -1 ;; - 1 ;; -(1) ;; +1 ;; - -1}}{{ ;;  + 1 ;;  / 2 ;;  || 'a' ;; ::STRING}} AS v FROM s.o
SELECT {{n ;; (n) ;; -n ;; - -n ;; +n ;; ~n}} {{+ ;; - ;; * ;; / ;; % ;; DIV ;; & ;; | ;; ^ ;; << ;; >> ;; >>>}} {{2 ;; id ;; (id + 1) ;; id + 1}} AS v FROM s.o
SELECT CAST({{n + id AS STRING) ;; n AS STRING) + id ;; n AS STRING) || id ;; (n, id) AS STRING) ;; n AS STRING)::INT ;; n::STRING AS INT) ;; - n AS STRING)}} AS v FROM s.o

-- pipes
FROM s.o{{ ;;  |> WHERE n > 5}}{{ ;;  |> EXTEND n + 1 AS q ;;  |> EXTEND n + 1 AS q, n + 2 AS r ;;  |> SET n = 1 ;;  |> SET n = n + 1, id = n ;;  |> DROP n ;;  |> DROP n, s ;;  |> AS q ;;  |> SELECT id ;;  |> SELECT DISTINCT id ;;  |> SELECT id, n AS q}}{{ ;;  |> LIMIT 2 ;;  |> ORDER BY id |> LIMIT 2 ;;  |> LIMIT 2 OFFSET 1 ;;  |> ORDER BY id DESC}}
FROM s.o |> AGGREGATE {{SUM(n) AS v ;; SUM(n) AS v, COUNT(*) AS w ;; SUM(n) AS v GROUP BY id ;; SUM(n) AS v GROUP BY id, s ;; SUM(n) AS v GROUP BY s, id ;; SUM(n) AS v GROUP BY id + 1 AS k ;; GROUP BY id ;; SUM(n) GROUP BY id ;; SUM(n) AS v GROUP BY id, s WITH ROLLUP ;; SUM(n) AS v GROUP BY id, s GROUPING SETS ((id), (s)) ;; SUM(n) AS v GROUP BY id, s, GROUPING SETS ((id), (s)) ;; SUM(n) AS v GROUP BY ROLLUP (id, s)}}
FROM s.o |> {{UNION ;; EXCEPT ;; MINUS ;; INTERSECT}}[[ {{ALL ;; DISTINCT}}]][[ BY NAME]] {{(SELECT * FROM s.e) ;; TABLE s.e ;; (TABLE s.e) ;; SELECT * FROM s.e ;; FROM s.e ;; (FROM s.e) ;; VALUES (1, 2, 'a', NULL)}}[[ |> SELECT n]]
FROM s.o |> {{JOIN ;; LEFT JOIN ;; CROSS JOIN ;; SEMI JOIN ;; ANTI JOIN ;; RIGHT JOIN ;; FULL JOIN}} s.e[[ AS q]][[ USING (id)]] |> SELECT o.n
FROM s.o |> {{TABLESAMPLE (100 PERCENT) ;; TABLESAMPLE (1 ROWS) ;; PIVOT (SUM(n) FOR s IN ('a', 'B')) ;; UNPIVOT (v FOR k IN (id, n)) ;; UNPIVOT INCLUDE NULLS (v FOR k IN (id, n)) ;; LATERAL VIEW EXPLODE(ARRAY(1, 2)) q AS e ;; LATERAL VIEW OUTER EXPLODE(ARRAY(1, 2)) q AS e}}
{{TABLE s.o ;; FROM s.o ;; SELECT * FROM s.o ;; (SELECT * FROM s.o) ;; VALUES (1, 2) AS o(id, n) ;; FROM s.o WHERE n > 5 ;; SELECT id, n FROM s.o WHERE n > 5}} |> {{SELECT id ;; WHERE id > 1 ;; SELECT COUNT(*) AS v ;; AGGREGATE COUNT(*) AS v}}
FROM {{s.o ;; s.o, s.e ;; s.o JOIN s.e ;; (SELECT * FROM s.o) q ;; s.o LATERAL VIEW EXPLODE(ARRAY(1, 2)) q AS e}} SELECT {{COUNT(*) AS v ;; 1 AS v ;; DISTINCT 1 AS v}}[[ WHERE TRUE]]
FROM s.o SELECT id[[ WHERE n > 5]][[ ORDER BY id]][[ LIMIT 1]]
