/**
 * The databases: files in a temporary folder, and a PostgreSQL server from npm, on the cores that everything shares.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { type Postgres, startPostgres, unavailable } from "../../packages/sql/test/postgres.ts"
import { cpuTimeOf } from "../lib/machine.ts"
import type { Store } from "./wire.ts"

/** The process that started another one, and what its children that have ended used, in milliseconds. */
const familyOf = (pid: number): { readonly parent: number; readonly ended: number } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return { parent: Number(fields[1]), ended: (Number(fields[13]) + Number(fields[14])) * 10 }
  } catch {
    return undefined
  }
}

/** The server's own processor time, that of all its processes. */
const cpuOf = (postmaster: number): number => {
  const children = readdirSync("/proc").map(Number).filter((pid) => pid > 0 && familyOf(pid)?.parent === postmaster)
  return [postmaster, ...children].reduce(
    (sum, pid) => sum + (cpuTimeOf(pid) ?? 0),
    familyOf(postmaster)?.ended ?? Number.NaN
  )
}

/** See the module's text. */
export class Databases {
  readonly #folder = mkdtempSync(join(tmpdir(), "skein-bench-"))
  #files = 0
  #postgres: Postgres | undefined
  #postmaster: number | undefined

  /** The address of an empty one. */
  async create(store: Store): Promise<string> {
    switch (store) {
      case "memory":
        return ""
      case "sqlite":
        return join(this.#folder, `${++this.#files}.db`)
      case "postgres": {
        if (unavailable !== undefined) throw new Error(unavailable)
        // As a server is set up by default: what is committed is on the disk.
        this.#postgres ??= await startPostgres({ durable: true })
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

/** What forks the process behind each connection. Only Linux tells. */
const postmasterOf = async (url: string): Promise<number | undefined> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows: [row] } = await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid")
  const parent = familyOf(row!.pid)?.parent
  await client.end()
  return parent
}
