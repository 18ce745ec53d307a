"""All that a SELECT from a table or view of PostgreSQL reaches: tables, and whatever decides which of them are read.

A view has its rule; a table its parts, by partition or inheritance. A rule names functions, operators and types. A
function whose body the server has parsed (BEGIN ATOMIC) names further ones. A cast to a domain runs the functions of
its CHECK, and so does a cast to a type that has the domain somewhere inside. Nothing else that is stored is run by
reading: columns keep what they hold, and policies are an error (`postgres.SETTINGS`). Expressions of ours use no casts,
functions or operators but the system's (`postgres_catalog.reading`); of a type that a role made only the labels of an
enum take part, which must stay as they are while a statement runs, or one person could be two.

`RECORD` tells whether any of that changed: a digest of what all those rows of the catalogs say, and another one of that
with the transactions that wrote them, by which a change that was taken back is told from none.

Why looking twice in one transaction is enough. A SELECT of nothing locks the table, what a view reads, and their parts:
none of them can be replaced, dropped or taken out until the transaction ends. What comes in later, a part or another
body of a function, is in the catalogs when the statement is planned or is not read by it; the first look was before
that and the second is after the statement, each with a snapshot of its own (READ COMMITTED). If both give the same, and
say what the session began with, the statement read what it would have read then.
"""

from __future__ import annotations

__all__ = ["ORIGINS", "RECORD", "UNSEEN"]

REACH = """
WITH RECURSIVE reach(class, oid) AS (
  SELECT 'pg_catalog.pg_class'::regclass::oid, %(oid)s::oid
  UNION
  SELECT found.class, found.oid FROM reach CROSS JOIN LATERAL (
    SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
    WHERE reach.class = 'pg_catalog.pg_class'::regclass AND r.ev_class = reach.oid AND r.ev_type = '1'
    UNION ALL
    SELECT reach.class, i.inhrelid FROM pg_catalog.pg_inherits i
    WHERE reach.class = 'pg_catalog.pg_class'::regclass AND i.inhparent = reach.oid
    UNION ALL
    SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
    WHERE reach.class <> 'pg_catalog.pg_class'::regclass AND d.classid = reach.class AND d.objid = reach.oid
      AND (reach.class <> 'pg_catalog.pg_type'::regclass OR d.refclassid = reach.class)
    UNION ALL
    SELECT reach.class, a.atttypid FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE reach.class = 'pg_catalog.pg_type'::regclass AND t.oid = reach.oid AND t.oid >= 16384
    UNION ALL
    SELECT 'pg_catalog.pg_constraint'::regclass::oid, k.oid FROM pg_catalog.pg_constraint k
    WHERE reach.class = 'pg_catalog.pg_type'::regclass AND k.contypid = reach.oid
  ) AS found(class, oid)
  LEFT JOIN pg_catalog.pg_class c ON found.class = 'pg_catalog.pg_class'::regclass AND c.oid = found.oid
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
     OR found.class IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass,
                        'pg_catalog.pg_type'::regclass, 'pg_catalog.pg_constraint'::regclass)
), relations AS (SELECT oid FROM reach WHERE class = 'pg_catalog.pg_class'::regclass)
"""
"""The table or view with all that reading it reaches. A type that is the row of a table is no reading of the table."""
RECORD = (
    REACH[:-1]
    + """, kept(oid) AS (
  SELECT a.atttypid FROM pg_catalog.pg_attribute a JOIN relations ON a.attrelid = relations.oid
  WHERE a.attnum > 0 AND NOT a.attisdropped
  UNION SELECT t.typbasetype FROM kept JOIN pg_catalog.pg_type t ON t.oid = kept.oid WHERE t.typtype = 'd'
)
SELECT md5(string_agg(said, ' ' ORDER BY said COLLATE "C")), md5(string_agg(written, ' ' ORDER BY written COLLATE "C"))
FROM (
  SELECT concat_ws('/', 'relation', c.oid, c.relkind), '' FROM relations JOIN pg_catalog.pg_class c USING (oid)
  UNION ALL
  SELECT concat_ws('/', 'view', r.ev_class, md5(pg_get_viewdef(r.ev_class))), concat_ws('/', r.oid, r.xmin)
  FROM relations JOIN pg_catalog.pg_rewrite r ON r.ev_class = relations.oid WHERE r.ev_type = '1'
  UNION ALL
  SELECT concat_ws('/', 'part', i.inhparent, i.inhrelid, to_jsonb(i) ->> 'inhdetachpending'), i.xmin::text
  FROM relations JOIN pg_catalog.pg_inherits i ON i.inhparent = relations.oid
  UNION ALL
  SELECT concat_ws('/', 'computed', d.adrelid, d.adnum, md5(pg_get_expr(d.adbin, d.adrelid))), d.xmin::text
  FROM relations JOIN pg_catalog.pg_attribute a ON a.attrelid = relations.oid AND a.attgenerated <> ''
  JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT concat_ws('/', 'foreign', f.ftrelid, s.oid, md5(concat_ws(' ', f.ftoptions, s.srvoptions))),
         concat_ws('/', f.xmin, s.xmin)
  FROM relations JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = relations.oid
  JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
  UNION ALL
  SELECT concat_ws('/', 'function', p.oid, md5(CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END)),
         p.xmin::text
  FROM reach JOIN pg_catalog.pg_proc p USING (oid) WHERE reach.class = 'pg_catalog.pg_proc'::regclass
  UNION ALL
  SELECT concat_ws('/', 'operator', o.oid, o.oprcode::oid), o.xmin::text
  FROM reach JOIN pg_catalog.pg_operator o USING (oid) WHERE reach.class = 'pg_catalog.pg_operator'::regclass
  UNION ALL
  SELECT concat_ws('/', 'type', t.oid, t.typbasetype, t.typelem, t.typnotnull), t.xmin::text
  FROM reach JOIN pg_catalog.pg_type t USING (oid) WHERE reach.class = 'pg_catalog.pg_type'::regclass
  UNION ALL
  SELECT concat_ws('/', 'enum', e.enumtypid),
         md5(string_agg(concat_ws('/', e.oid, e.xmin, e.enumlabel::text), ' ' ORDER BY e.oid))
  FROM kept JOIN pg_catalog.pg_enum e ON e.enumtypid = kept.oid GROUP BY e.enumtypid
  UNION ALL
  SELECT concat_ws('/', 'cast', c.castsource, c.casttarget, c.castfunc, c.castmethod, c.castcontext), c.xmin::text
  FROM pg_catalog.pg_cast c WHERE c.oid >= 16384 AND c.castsource < 16384 AND c.casttarget < 16384
  UNION ALL
  SELECT concat_ws('/', 'constraint', k.oid, md5(pg_get_constraintdef(k.oid))), k.xmin::text
  FROM reach JOIN pg_catalog.pg_constraint k USING (oid) WHERE reach.class = 'pg_catalog.pg_constraint'::regclass
) AS lines(said, version) CROSS JOIN LATERAL (SELECT concat_ws('/', said, version)) AS dated(written)
"""
)
"""Two digests of what reading a table reaches: of what it says, and of that with the transactions that wrote it. Casts
between types of the system are in it. Labels of enums are in the second alone: between two statements they may change,
as values do."""
UNSEEN = (
    REACH
    + """
SELECT p.proname::text, NULL FROM reach JOIN pg_catalog.pg_proc p USING (oid)
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE reach.class = 'pg_catalog.pg_proc'::regclass AND p.oid >= 16384
  AND NOT (p.prokind = 'a' OR to_jsonb(p) ->> 'prosqlbody' IS NOT NULL
           OR l.lanname::text IN ('c', 'internal') AND p.provolatile = 'i')
UNION ALL
SELECT NULL, pg_get_viewdef(c.oid) FROM relations JOIN pg_catalog.pg_class c USING (oid) WHERE c.relkind IN ('v', 'm')
UNION ALL
SELECT NULL, pg_get_functiondef(p.oid) FROM reach JOIN pg_catalog.pg_proc p USING (oid)
WHERE reach.class = 'pg_catalog.pg_proc'::regclass AND p.oid >= 16384 AND p.prokind <> 'a'
UNION ALL
SELECT NULL, pg_get_constraintdef(k.oid) FROM reach JOIN pg_catalog.pg_constraint k USING (oid)
WHERE reach.class = 'pg_catalog.pg_constraint'::regclass AND k.contypid <> 0
ORDER BY 1, 2
"""
)
"""Functions of which the catalogs do not know what they read, and the texts in which functions of the system stand. The
catalogs know it of bodies that the server has parsed (BEGIN ATOMIC); functions that only an administrator can make are
believed to read nothing if they say so (IMMUTABLE)."""
ORIGINS = (
    REACH[:-1]
    + """, above(oid) AS (
  SELECT oid FROM relations
  UNION SELECT i.inhparent FROM above JOIN pg_catalog.pg_inherits i ON i.inhrelid = above.oid
)
SELECT n.nspname::text, c.relname::text, c.oid, c.relkind IN ('r', 'p', 'f')
FROM above JOIN pg_catalog.pg_class c ON c.oid = above.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY above.oid <> %(oid)s, 1, 2
"""
)
"""The table itself, what reading it reads, their parts, and what they are parts of."""
