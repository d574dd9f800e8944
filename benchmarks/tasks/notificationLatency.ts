/**
 * The latency of a change of a task: the time from the call of `Task.setStatusMessage` to the new state in a subscribed client in
 * another process. On PostgreSQL the worker and the server of the client are different processes.
 */
import type { Measure, Row } from "../http/report.ts"
import { quantile } from "../lib/statistics.ts"
import type { Databases } from "./databases.ts"
import { Program } from "./processes.ts"
import type { Store } from "./commands.ts"

export interface Plan {
  readonly rounds: number
  /**
   * The number of concurrent tasks, the number of changes of each, and the interval between changes in milliseconds.
   */
  readonly tasks: number
  readonly ticks: number
  readonly interval: number
}

interface Setup {
  readonly store: Store
  readonly client: Program
  readonly all: ReadonlyArray<Program>
  readonly latencies: Array<number>
}

const start = async (databases: Databases, store: Store): Promise<Setup> => {
  const at = await databases.create(store)
  const separateWorker = store === "postgres"
  const server = await Program.startServer(store, at, { listen: true, work: !separateWorker })
  const worker = separateWorker ? [(await Program.startServer(store, at)).program] : []
  const client = await Program.startClient(server.url)
  return { store, client, all: [server.program, client, ...worker], latencies: [] }
}

const labels: Record<Store, string> = {
  memory: "memory",
  sqlite: "SQLite: server with engine, and client in another process",
  postgres: "PostgreSQL: worker, server and client in three processes"
}

/** Measures all stores side by side. */
export const measure = async (databases: Databases, stores: ReadonlyArray<Store>, plan: Plan): Promise<Measure> => {
  const setups: Array<Setup> = []
  const { interval, rounds, tasks, ticks } = plan
  try {
    for (const store of stores) setups.push(await start(databases, store))
    // The first round does not count.
    for (let round = -1; round < rounds; round++) {
      for (const { client, latencies } of setups) {
        const received = await client.send({ do: "follow", tasks, ticks, interval }) as ReadonlyArray<number>
        if (round >= 0) latencies.push(...received)
      }
    }
  } finally {
    await Promise.all(setups.flatMap(({ all }) => all).map((program) => program.kill()))
  }
  const expected = rounds * tasks * ticks
  return {
    name: "notices",
    era: "request",
    title:
      `From a change of a task to a subscribed client over HTTP, 2026-07-28: ${tasks} tasks with a change every ${interval} ms`,
    columns: [
      { key: "p50", title: "p50 ms", unit: "decimal" },
      { key: "p95", title: "p95 ms", unit: "decimal" },
      { key: "p99", title: "p99 ms", unit: "decimal" },
      { key: "max", title: "max ms", unit: "decimal" },
      { key: "received", title: "received", unit: "percent" }
    ],
    rows: setups.map(({ latencies, store }): Row => ({
      peer: store,
      label: labels[store],
      figures: {
        p50: quantile(latencies, 0.5),
        p95: quantile(latencies, 0.95),
        p99: quantile(latencies, 0.99),
        max: quantile(latencies, 1),
        received: latencies.length / expected * 100
      }
    }))
  }
}
