/**
 * The databases: files in a temporary folder, and a PostgreSQL server from npm. The server shares the cores with all
 * other processes.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { type Postgres, startPostgres, unavailable } from "../../packages/sql/test/postgres.ts"
import { cpuTimeOf } from "../lib/machine.ts"
import type { Store } from "./commands.ts"
import { execute } from "./counters.ts"

/** The parent of a process, and the processor time of its exited children in milliseconds. */
const familyOf = (pid: number): { readonly parent: number; readonly ended: number } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return { parent: Number(fields[1]), ended: (Number(fields[13]) + Number(fields[14])) * 10 }
  } catch {
    return undefined
  }
}

/** The processor time of all processes of the PostgreSQL server. */
const cpuOf = (postmaster: number): number => {
  const children = readdirSync("/proc").map(Number).filter((pid) => pid > 0 && familyOf(pid)?.parent === postmaster)
  return [postmaster, ...children].reduce(
    (sum, pid) => sum + (cpuTimeOf(pid) ?? 0),
    familyOf(postmaster)?.ended ?? Number.NaN
  )
}

/** Creates databases, and removes them at the end. */
export class Databases {
  readonly #folder = mkdtempSync(join(tmpdir(), "skein-bench-"))
  #files = 0
  #postgres: Postgres | undefined
  #postmaster: number | undefined

  /** Creates an empty database, and returns its file or URL. */
  async create(store: Store): Promise<string> {
    switch (store) {
      case "memory":
        return ""
      case "sqlite":
        return join(this.#folder, `${++this.#files}.db`)
      case "postgres": {
        if (unavailable !== undefined) throw new Error(unavailable)
        this.#postgres ??= await startServer()
        const url = await this.#postgres.createDatabase()
        this.#postmaster ??= await postmasterOf(url)
        return url
      }
    }
  }

  /** The processor time that PostgreSQL has used so far, in milliseconds. */
  cpu(): number {
    return this.#postmaster === undefined ? Number.NaN : cpuOf(this.#postmaster)
  }

  async stop(): Promise<void> {
    await this.#postgres?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Starts a server with its default configuration, which flushes each commit to the disk. */
const startServer = async (): Promise<Postgres> => {
  const postgres = await startPostgres({ durable: true })
  const url = `postgres://postgres@127.0.0.1:${postgres.port}/postgres`
  // Statements can be counted (`Counters`), and are not by default.
  await execute(url, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
  await postgres.restartImmediate()
  await execute(url, "CREATE EXTENSION pg_stat_statements")
  await execute(url, "ALTER SYSTEM SET pg_stat_statements.track = 'none'")
  await execute(url, "SELECT pg_reload_conf()")
  return postgres
}

/** Finds the process that forks a backend for each connection. It is known on Linux only. */
const postmasterOf = async (url: string): Promise<number | undefined> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows: [row] } = await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid")
  const parent = familyOf(row!.pid)?.parent
  await client.end()
  return parent
}
