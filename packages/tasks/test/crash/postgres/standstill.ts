/**
 * Looks for tasks that stand still: tasks that a worker could run, and that none does, although the database and the
 * workers are there.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Fleet } from "./fleet.ts"

/** Milliseconds: an outage, the lease of a worker and several polls take less. */
const longestPause = 12_000

/**
 * Looks twice a second, until `stop`, which returns the problems: tasks that have stood still for longer than `longest`
 * milliseconds.
 */
export const watchForStandstill = (
  fleet: Pick<Fleet, "query">,
  longest = longestPause
): { readonly stop: () => Promise<ReadonlyArray<string>> } => {
  const since = new Map<string, number>()
  const problems = new Map<string, string>()
  let isStopped = false
  const look = async (): Promise<void> => {
    const rows = await fleet.query<{ id: string; runs: number; what: string }>(
      `SELECT task_id AS id, runs, CASE state WHEN 0 THEN 'nobody claims it' WHEN 1 THEN 'nobody wakes it'
         ELSE 'its worker is not registered' END AS what
       FROM skein_task_queue
       WHERE state = 0 OR state = 1 AND wake_at <= extract(epoch FROM clock_timestamp()) * 1000
         OR state = 2 AND worker NOT IN (SELECT id FROM skein_task_workers)`
    )
    const now = performance.now()
    const seen = new Set(rows.map(({ id, runs, what }) => `${id}: ${what} (run ${runs})`))
    for (const key of since.keys()) if (!seen.has(key)) since.delete(key)
    for (const key of seen) {
      const begun = since.get(key) ?? now
      since.set(key, begun)
      if (now - begun > longest) {
        problems.set(key, `a task stood still for ${Math.round((now - begun) / 1000)} s: ${key}`)
      }
    }
  }
  const ended = (async () => {
    while (!isStopped) {
      // The database is away now and then.
      await look().catch(() => since.clear())
      await sleep(500)
    }
  })()
  return {
    stop: async () => {
      isStopped = true
      await ended
      return [...problems.values()]
    }
  }
}
