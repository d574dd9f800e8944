/**
 * The statistics that PostgreSQL keeps of a database: transactions, statements, buffers and HOT updates. Only views of
 * the server are read, no tables.
 */
import { Client } from "pg"

/** The counters of PostgreSQL for one database. */
export interface Counts {
  readonly transactions: number
  readonly statements: number
  /** The buffers that were read, from the cache or from a file. */
  readonly buffers: number
  /** The time of the reading in milliseconds. */
  readonly at: number
}

/** The counts of a second. */
export type Rates = Omit<Counts, "at">

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** A connection reports its counts when it has been idle for ten seconds, if not earlier. */
const reportTime = 11_000

const connect = async (url: string): Promise<Client> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  return client
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

/** Executes one statement in a database. */
export const execute = async (url: string, statement: string): Promise<void> => {
  const client = await connect(url)
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The database of a server that always exists, and that no engine uses. */
export const maintenance = (url: string): string => new URL("/postgres", url).href

/** Counts in databases of one server. All figures are in the order of the databases. */
export class Counters {
  readonly #client: Client
  readonly #urls: ReadonlyArray<string>

  private constructor(client: Client, urls: ReadonlyArray<string>) {
    this.#client = client
    this.#urls = urls
  }

  /** Connects to the server of at least one database, and starts to count statements. */
  static async open(urls: ReadonlyArray<string>): Promise<Counters> {
    const client = await connect(maintenance(urls[0]!))
    await client.query("ALTER SYSTEM SET pg_stat_statements.track = 'all'")
    await client.query("SELECT pg_reload_conf()")
    return new Counters(client, urls)
  }

  /** Reads the counts after all connections have reported theirs. */
  async read(): Promise<ReadonlyArray<Counts>> {
    await sleep(reportTime)
    return this.#read()
  }

  /** The counts of a second while the engines are idle, over some milliseconds. */
  async idle(millis: number): Promise<ReadonlyArray<Rates>> {
    const before = await this.read()
    await sleep(millis)
    const after = await this.#read()
    return before.map((counts, index) => ratesOf(counts, after[index]!))
  }

  close(): Promise<void> {
    return this.#client.end()
  }

  async #read(): Promise<ReadonlyArray<Counts>> {
    const { rows } = await this.#client.query<Record<string, string>>(
      `SELECT xact_commit AS transactions, blks_hit + blks_read AS buffers,
         (SELECT sum(calls) FROM pg_stat_statements WHERE dbid = datid) AS statements
       FROM unnest($1::text[]) WITH ORDINALITY AS wanted(name, position)
       JOIN pg_stat_database ON datname = wanted.name ORDER BY position`,
      [this.#urls.map(nameOf)]
    )
    const at = performance.now()
    return rows.map((row) => ({
      transactions: Number(row["transactions"]),
      statements: Number(row["statements"]),
      buffers: Number(row["buffers"]),
      at
    }))
  }
}

const map = (before: Counts, after: Counts, f: (difference: number, key: keyof Rates) => number): Rates => ({
  transactions: f(after.transactions - before.transactions, "transactions"),
  statements: f(after.statements - before.statements, "statements"),
  buffers: f(after.buffers - before.buffers, "buffers")
})

const ratesOf = (before: Counts, after: Counts): Rates =>
  map(before, after, (difference) => difference / (after.at - before.at) * 1_000)

/** The counts of each task that ran between two readings, in `busy` milliseconds. The engine was idle otherwise. */
export const perTask = (before: Counts, after: Counts, idle: Rates, busy: number, tasks: number): Rates =>
  map(before, after, (difference, key) => (difference - idle[key] * (after.at - before.at - busy) / 1_000) / tasks)

/** The percentage of the updates of a table that were HOT: those that did not change its indexes. */
export const hotUpdates = async (url: string, table: string): Promise<number | undefined> => {
  const client = await connect(url)
  try {
    const { rows: [row] } = await client.query<Record<string, string>>(
      "SELECT n_tup_hot_upd AS hot, n_tup_upd AS updates FROM pg_stat_user_tables WHERE relname = $1",
      [table]
    )
    return row === undefined || Number(row["updates"]) === 0
      ? undefined
      : Number(row["hot"]) / Number(row["updates"]) * 100
  } finally {
    await client.end()
  }
}
