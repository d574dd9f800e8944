/**
 * How long it takes from a change of a task to a client that listens to it, in another process: from the call of `Task.setStatusMessage` to the state
 * in the client's hands. On PostgreSQL the worker is another process than the server that the client listens to.
 */
import type { Measure, Row } from "../http/report.ts"
import { quantile } from "../lib/statistics.ts"
import type { Databases } from "./database.ts"
import { Program } from "./processes.ts"
import type { Store } from "./wire.ts"

export interface Plan {
  readonly rounds: number
  /** How many tasks tick at a time, how often, and how many milliseconds apart. */
  readonly tasks: number
  readonly ticks: number
  readonly every: number
}

interface Setup {
  readonly store: Store
  readonly client: Program
  readonly all: ReadonlyArray<Program>
  readonly late: Array<number>
}

const start = async (databases: Databases, store: Store): Promise<Setup> => {
  const at = await databases.create(store)
  const apart = store === "postgres"
  const server = await Program.serving(store, at, { door: true, work: !apart })
  const worker = apart ? [(await Program.serving(store, at)).program] : []
  const client = await Program.client(server.url)
  return { store, client, all: [server.program, client, ...worker], late: [] }
}

const labels: Record<Store, string> = {
  memory: "memory",
  sqlite: "SQLite: the server works, the client is another process",
  postgres: "PostgreSQL: worker, server and client are three processes"
}

/** Measures stores side by side. */
export const measure = async (databases: Databases, stores: ReadonlyArray<Store>, plan: Plan): Promise<Measure> => {
  const setups: Array<Setup> = []
  const { every, rounds, tasks, ticks } = plan
  try {
    for (const store of stores) setups.push(await start(databases, store))
    // The first round does not count.
    for (let round = -1; round < rounds; round++) {
      for (const { client, late } of setups) {
        const heard = await client.tell({ do: "listen", tasks, ticks, every }) as ReadonlyArray<number>
        if (round >= 0) late.push(...heard)
      }
    }
  } finally {
    await Promise.all(setups.flatMap(({ all }) => all).map((program) => program.kill()))
  }
  const said = rounds * tasks * ticks
  return {
    name: "notices",
    era: "request",
    title:
      `From a change of a task to a client that listens, over HTTP, 2026-07-28: ${tasks} tasks, one change in ${every} ms each`,
    columns: [
      { key: "p50", title: "p50 ms", unit: "decimal" },
      { key: "p95", title: "p95 ms", unit: "decimal" },
      { key: "p99", title: "p99 ms", unit: "decimal" },
      { key: "max", title: "max ms", unit: "decimal" },
      { key: "heard", title: "heard", unit: "percent" }
    ],
    rows: setups.map(({ late, store }): Row => ({
      peer: store,
      label: labels[store],
      figures: {
        p50: quantile(late, 0.5),
        p95: quantile(late, 0.95),
        p99: quantile(late, 0.99),
        max: quantile(late, 1),
        heard: late.length / said * 100
      }
    }))
  }
}
