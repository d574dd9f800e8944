/** Workers on one PostgreSQL database whose schedules have a task each second, and that are killed again and again. */
import { setTimeout as sleep } from "node:timers/promises"
import { Client } from "pg"
import { afterAll, describe, expect, it } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { Child, killChildren } from "./child.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(async () => {
  killChildren()
  await server?.stop()
})

const kills = 12

describe.skipIf(server === undefined)("workers that are killed", () => {
  it("start one task for each time of each schedule, and none twice", async () => {
    const url = await server!.createDatabase()
    const database = new Client({ connectionString: url })
    await database.connect()
    await database.query("CREATE TABLE ledger (schedule INTEGER NOT NULL, at TEXT NOT NULL)")
    const start = async () => {
      const child = new Child("scheduledProcess.ts", [], { DATABASE_URL: url })
      expect([await child.message(), child.err]).toEqual([{ ready: true }, expect.any(String)])
      return child
    }
    const workers = [await start()]
    workers.push(await start(), await start())
    for (let kill = 0; kill < kills; kill++) {
      await sleep(300 + Math.random() * 900)
      // In between, all of them.
      const count = kill % 4 === 3 ? workers.length : 1
      const killed = workers.splice(Math.floor(Math.random() * (workers.length - count + 1)), count)
      await Promise.all(killed.map((worker) => worker.kill("SIGKILL")))
      workers.push(...await Promise.all(killed.map(start)))
    }
    await sleep(1000)
    await database.query("UPDATE skein_task_schedules SET paused = 1")
    const query = async <A>(text: string) => (await database.query(text)).rows as ReadonlyArray<A>
    while ((await query("SELECT 1 FROM skein_task_queue")).length > 0) await sleep(100)
    for (const worker of workers) await worker.kill("SIGTERM")
    const rows = await query<{ schedule: number; at: string }>("SELECT schedule, at FROM ledger")
    const next = await query<{ name: string; next_at: string }>("SELECT name, next_at FROM skein_task_schedules")
    await database.end()
    expect(next).toHaveLength(4)
    for (const { name, next_at } of next) {
      const times = rows.filter(({ schedule }) => name === `schedule ${schedule}`).map(({ at }) => Date.parse(at))
      times.sort((a, b) => a - b)
      const count = (Number(next_at) - times[0]!) / 1000
      expect(times).toEqual(Array.from({ length: count }, (_, index) => times[0]! + index * 1000))
      expect(count).toBeGreaterThan(kills / 2)
    }
  }, 240_000)
})
