/** Tasks in PostgreSQL: a server that runs none, and workers. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer } from "skein"
import { postgresTasks, task, TaskError, tasks } from "skein/tasks"
import { afterAll } from "vitest"
import { z } from "zod"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"

const postgres = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => postgres?.stop())

describe.skipIf(postgres === undefined)("postgresTasks", () => {
  it("a worker of the pool runs the tasks of a server that runs none", async () => {
    const url = await postgres!.createDatabase()
    const bake = task(
      "bake",
      { input: z.object({ cakes: z.int() }), pool: "ovens" },
      async ({ cakes }, { step }) => step("bake", () => `${cakes} cakes`)
    )
    const front = tasks(postgresTasks({ url, runTasks: false }), [bake])
    const server = await new AsyncServer({ name: "bakery", version: "1.0.0" }).use(front).listen({ port: 0 })
    const { id } = await front.start(bake, { cakes: 2 })
    const worker = await tasks(postgresTasks({ url, pools: ["ovens"], maxConnections: 4 }), [bake]).startWorker()
    try {
      expect(await front.wait(id)).toMatchObject({ outcome: { result: { content: [{ text: "2 cakes" }] } } })
      expect(await front.admin.workers()).toMatchObject([{ pools: ["ovens"], isLost: false }])
      const store = postgresTasks({ url, migrate: false })
      const operator = await store.openAdmin()
      expect((await operator.admin.list({ pool: "ovens" })).map(({ state }) => state.id)).toEqual([id])
      await operator.close()
      const { from, to } = await store.migrate()
      expect(from).toBe(to)
    } finally {
      await worker.close()
      await server.close()
    }
  }, 60_000)

  it("a transaction whose connection is lost starts again, and commits once", async () => {
    const url = await postgres!.createDatabase()
    let runs = 0
    const book = task("book", {}, async (_, { transaction }) => {
      await transaction("create", (sql) => sql`CREATE TABLE orders (tea TEXT)`)
      await transaction("book", async (sql) => {
        await sql`INSERT INTO orders VALUES (${"sencha"})`
        if (++runs === 1) await sql`SELECT pg_terminate_backend(pg_backend_pid())`
      })
      const rows = await transaction("read", (sql) => sql<{ tea: string }>`SELECT tea FROM orders`)
      return rows.map(({ tea }) => tea).join()
    })
    const shop = tasks(postgresTasks({ url }), [book])
    const worker = await shop.startWorker()
    try {
      const { id } = await shop.start(book, {})
      expect(await shop.wait(id)).toMatchObject({ outcome: { result: { content: [{ text: "sencha" }] } } })
      expect(runs).toBe(2)
    } finally {
      await worker.close()
    }
  }, 60_000)

  it("rejects with StoreError where it cannot connect", async () => {
    const unreachable = postgresTasks({ host: "127.0.0.1", port: 1, connectTimeout: 500 })
    const error = await tasks(unreachable, []).startWorker().catch((error: unknown) => error)
    expect(error instanceof TaskError && error.reason._tag).toBe("StoreError")
  })
})
