/**
 * The counters of tasks on PostgreSQL: rows of `skein_task_counters`, which keep two costs low.
 *
 * - While a transaction is open, say for a backup, PostgreSQL keeps each version of a row, and a look-up by key reads all of
 *   them. So a part of the key, `version`, grows after about {@link updatesPerVersion} updates, and the row with the highest
 *   one is the counter: a look-up begins there.
 * - A transaction locks its counters until it has ended. So a counter consists of {@link slots} rows, and the transactions of
 *   different connections change different ones.
 *
 * A process of an earlier version counts in `skein_task_counts`: a counter is the sum of both.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { type Database, runAll } from "./database.ts"

const slots = 4
const updatesPerVersion = 32

/** A limit below this is exact: those who count towards it wait for each other. Above it is checked before they count. */
const exactBelow = 1_000

// Owners are many, and each has few tasks at once.
const slotsOf = (kind: string): string => `CASE ${kind} WHEN 2 THEN 1 ELSE ${slots} END`

/** The row of a counter: `live` and `retained`. */
export const counterOf = (kind: string, name: string): string =>
  `(SELECT COALESCE(SUM(part.live), 0) AS live, COALESCE(SUM(part.retained), 0) AS retained FROM (
    SELECT earlier.live, earlier.retained FROM skein_task_counts AS earlier
    WHERE earlier.kind = ${kind} AND earlier.name = ${name}
    UNION ALL
    SELECT latest.live, latest.retained FROM generate_series(0, ${
    slotsOf(kind)
  } - 1) AS slots(slot) CROSS JOIN LATERAL (
      SELECT stored.live, stored.retained FROM skein_task_counters AS stored
      WHERE stored.kind = ${kind} AND stored.name = ${name} AND stored.slot = slots.slot
      ORDER BY stored.version DESC LIMIT 1
    ) AS latest
  ) AS part)`

/** The slot of the connection. */
const ownSlot = `CAST(pg_backend_pid() % ${slots} AS SMALLINT)`

/** Counts the task in the row `created`, with the limits in `bound`. Returns the counters whose limits are exact. */
export const countNew = `SELECT counted.kind, counted.live, counted.retained FROM created
  CROSS JOIN LATERAL skein_task_count(
    ARRAY[0, 1, 2], ARRAY['', created.tool, created.counter],
    ARRAY(SELECT LEAST(bound.live, bound.retained) < ${exactBelow} FROM bound ORDER BY bound.kind), ARRAY[1, 1, 1],
    ARRAY[1, 1, 1]
  ) AS counted`

/** Counts the end of the task in the row `changed`. */
export const countEnd = `SELECT 1 FROM changed CROSS JOIN LATERAL skein_task_count(
    ARRAY[0, 1, 2], ARRAY['', changed.tool, changed.counter], ARRAY[FALSE, FALSE, FALSE], ARRAY[-1, -1, -1], ARRAY[0, 0, 0]
  ) AS counted`

/** Counts the tasks of a JSON array of objects with `kind`, `name`, `live` and `retained`. */
export const countAll = `SELECT 1 FROM (
    SELECT array_agg(kind ORDER BY kind, name) AS kinds, array_agg(name ORDER BY kind, name) AS names,
      array_agg(FALSE) AS are_exact, array_agg(live ORDER BY kind, name) AS lives,
      array_agg(retained ORDER BY kind, name) AS retaineds
    FROM (
      SELECT kind, name, CAST(SUM(live) AS INTEGER) AS live, CAST(SUM(retained) AS INTEGER) AS retained
      FROM json_to_recordset(CAST(? AS JSON)) AS item(kind INTEGER, name TEXT, live INTEGER, retained INTEGER)
      GROUP BY kind, name
    ) AS items
  ) AS counters
  CROSS JOIN LATERAL skein_task_count(kinds, names, are_exact, lives, retaineds) AS counted`

/**
 * Adds to counters, in the order of the arrays, which is the same everywhere, so that no two wait for each other. Returns the
 * counters of exact limits. Those who make the same counter do so one after the other. That of an owner is deleted at zero:
 * each owner would leave one forever.
 */
const countTasks = `CREATE OR REPLACE FUNCTION skein_task_count(
    kinds INTEGER[], names TEXT[], are_exact BOOLEAN[], lives INTEGER[], retaineds INTEGER[]
  ) RETURNS TABLE (kind INTEGER, live BIGINT, retained BIGINT) LANGUAGE plpgsql AS $$
  DECLARE
    own SMALLINT;
    left_over RECORD;
  BEGIN
    FOR place IN 1 .. COALESCE(array_length(kinds, 1), 0) LOOP
      own := CASE WHEN are_exact[place] OR kinds[place] = 2 THEN 0 ELSE ${ownSlot} END;
      FOR attempt IN 1 .. 2 LOOP
        UPDATE skein_task_counters AS counter SET live = counter.live + lives[place],
          retained = counter.retained + retaineds[place],
          version = counter.version + CASE WHEN random() * ${updatesPerVersion} < 1 THEN 1 ELSE 0 END
        WHERE counter.kind = kinds[place] AND counter.name = names[place] AND counter.slot = own AND counter.version >= (
          SELECT latest.version FROM skein_task_counters AS latest
          WHERE latest.kind = kinds[place] AND latest.name = names[place] AND latest.slot = own
          ORDER BY latest.version DESC LIMIT 1
        ) RETURNING counter.live, counter.retained, counter.version INTO left_over;
        EXIT WHEN FOUND;
        IF attempt = 1 THEN
          PERFORM pg_advisory_xact_lock(hashtextextended(format('skein_task_counters %s %s %s', kinds[place], own, names[place]), 0));
        ELSE
          INSERT INTO skein_task_counters (kind, name, slot, version, live, retained) VALUES (
            kinds[place], names[place], own, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), lives[place],
            retaineds[place]
          ) RETURNING skein_task_counters.live, skein_task_counters.retained, skein_task_counters.version INTO left_over;
        END IF;
      END LOOP;
      IF kinds[place] = 2 AND left_over.live = 0 AND left_over.retained = 0 THEN
        DELETE FROM skein_task_counters AS counter
        WHERE counter.kind = 2 AND counter.name = names[place] AND counter.slot = own AND counter.version = left_over.version;
      END IF;
      IF are_exact[place] THEN
        RETURN QUERY SELECT kinds[place], CAST(total.live AS BIGINT), CAST(total.retained AS BIGINT)
          FROM ${counterOf("kinds[place]", "names[place]")} AS total;
      END IF;
    END LOOP;
  END $$`

/** The tables and the function of the counters, on PostgreSQL. */
export const createCounters = (database: Database): Effect.Effect<void, TaskError> =>
  database.isPostgres
    ? runAll(database, [
      `CREATE TABLE IF NOT EXISTS skein_task_counters (
        kind SMALLINT NOT NULL,
        name TEXT NOT NULL,
        slot SMALLINT NOT NULL,
        version BIGINT NOT NULL,
        live BIGINT NOT NULL,
        retained BIGINT NOT NULL,
        PRIMARY KEY (kind, name, slot, version)
      ) WITH (fillfactor = 30)`,
      // Processes of an earlier version wait meanwhile, and then count from zero.
      `WITH moved AS (DELETE FROM skein_task_counts RETURNING kind, name, live, retained)
       INSERT INTO skein_task_counters (kind, name, slot, version, live, retained)
       SELECT kind, name, 0, 0, live, retained FROM moved WHERE live <> 0 OR retained <> 0`,
      countTasks
    ])
    : Effect.void
