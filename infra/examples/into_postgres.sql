-- A worker that upserts the rows of a task into a table of PostgreSQL, by `rowmill work` and psql alone:
--
--   rowmill work --type customers --url APIURL -- psql -qAtX -f infra/examples/into_postgres.sql "$DATABASE_URL"
--
-- The table: CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, version text COLLATE "C" NOT NULL);
--
-- Of two rows with the same id the later one wins, whatever comes first: the later job, since the names of jobs sort by
-- their creation, then the later row. So a task that is processed twice changes nothing. All of a task is one
-- transaction; a row that PostgreSQL refuses fails alone.
\set ON_ERROR_STOP on
BEGIN;
CREATE TEMP TABLE task (line text NOT NULL) ON COMMIT DROP;
-- A line is one value: JSON has no control characters.
\copy task FROM pstdin WITH (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01')

-- Why PostgreSQL refuses an item; null if it does not.
CREATE FUNCTION pg_temp.put(line text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  item jsonb;
  why text;
BEGIN
  item := line;
  INSERT INTO customers (id, name, version)
  VALUES (
    (item -> 'record' ->> 'id')::bigint,
    item -> 'record' ->> 'name',
    (item ->> 'jobGuid') || '#' || lpad(item ->> 'row', 14, '0')
  )
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version
  WHERE customers.version < excluded.version;
  RETURN NULL;
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
  -- Not the message: it may quote the row.
  GET STACKED DIAGNOSTICS why = RETURNED_SQLSTATE;
  RETURN why;
END $$;

-- The items without a line have succeeded once psql has ended well. An item begins with its name.
SELECT json_build_object(
  'itemIdentifier', substring(line FROM '^{"itemIdentifier": ?"([^"]*)"'),
  'code', 'postgres_' || lower(why),
  'message', 'PostgreSQL refuses the row'
)
FROM (SELECT line, pg_temp.put(line) AS why FROM task) AS outcomes
WHERE why IS NOT NULL;
COMMIT;
