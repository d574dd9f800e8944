/**
 * An `SqlClient` on `pg`: a pool of connections to PostgreSQL, and one connection that listens.
 *
 * **When to use**
 *
 * For any number of processes on one database. The driver is thin and goes away when the official one is published for
 * Effect 4.1. `pg` is a peer dependency, and loaded when the layer is built.
 *
 * **Gotchas**
 *
 * - The server's defaults decide about durability: with `synchronous_commit = on` what was committed survives a power
 *   failure.
 * - When the server goes away, statements on the connections that were open fail with `ConnectionError`; these
 *   connections are thrown away, and the next statement opens a new one. Nothing is repeated by itself: whether a
 *   statement that was under way has been executed is unknown.
 * - A statement that is interrupted is cancelled on the server, by a connection of its own; where that fails, its
 *   connection is closed.
 * - `stream` reads all rows first.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import type { ConnectionOptions } from "node:tls"
import type { Client, ClientBase, ClientConfig, CustomTypesConfig, PoolClient, QueryResult } from "pg"
import { makeConnection, makeNames, type Types } from "./internal/pgConnection.ts"
import { pgError } from "./internal/pgError.ts"
import { makeListen } from "./internal/pgListener.ts"

/** Where the database is and how much is asked of it. What is given neither here nor in `url` comes from `PGHOST` and so on. */
export interface Options {
  /** `postgres://user:password@host:5432/database?sslmode=…`. What it says wins over the members below. */
  readonly url?: string | Redacted.Redacted<string> | undefined
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | Redacted.Redacted<string> | undefined
  readonly ssl?: boolean | ConnectionOptions | undefined
  /** What the server's own views call this process. Default `skein`. */
  readonly applicationName?: string | undefined
  /**
   * Connections of the pool at most: 10 by default. Who needs one more waits its turn, `connectTimeout` at most. The one
   * that listens and those that cancel come on top.
   */
  readonly maxConnections?: number | undefined
  /** How long a connection may take to open, or to become free, until the statement fails: 10 seconds by default. */
  readonly connectTimeout?: Duration.Input | undefined
  /** After how long a connection that nobody uses is closed: 30 seconds by default. */
  readonly idleTimeout?: Duration.Input | undefined
  /**
   * How long the server works on one statement, waiting for locks included, until it fails with
   * `StatementTimeoutError`: 30 seconds by default; `Duration.infinity` for no bound.
   */
  readonly statementTimeout?: Duration.Input | undefined
  /**
   * How long a transaction may pause between two statements until the server ends it together with its connection: a
   * process that is stopped in the middle must not hold its locks for ever. 30 seconds by default; `Duration.infinity`
   * for no bound.
   */
  readonly idleInTransactionTimeout?: Duration.Input | undefined
  /**
   * Statements with values that the server keeps compiled on each connection, which halves its work for them: the first
   * so many that come a second time, except `unprepared` ones. 200 by default; 0 for none, as some connection poolers
   * need it.
   */
  readonly statements?: number | undefined
  /** Renames identifiers in statements, `camelCase` to `snake_case` for example. Default: none. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Renames the columns of results. Default: none, which is the fastest. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/** An `SqlClient` that can also listen. */
export interface PgClient extends SqlClient.SqlClient {
  /**
   * Calls `onNotification` with the payload of each `NOTIFY` on the channel, for the life of the scope. Returns when the
   * server listens, so that nothing that is notified afterwards is missed; fails when the first connection cannot be
   * opened.
   *
   * All channels of a client share one connection. When it is lost it is opened again, after 100 ms, doubled up to 5
   * seconds, as often as it takes; then `onReconnected` is called: notifications in between are lost. Both functions
   * must not throw.
   */
  readonly listen: (
    channel: string,
    onNotification: (payload: string) => void,
    onReconnected: () => void
  ) => Effect.Effect<void, SqlError, Scope.Scope>
}

/** The service key of a `PgClient`. */
export const PgClient = Context.Service<PgClient>("@skein/sql/PgClient")

/**
 * Opens the pool for the life of the scope, and one connection at once, to see that it can.
 *
 * **Details**
 *
 * `int8` is read as a number where it fits, else as a `bigint`; always as a `bigint` where `SqlClient.SafeIntegers` is
 * provided. `raw` gives `pg`'s own result.
 */
export const make = (options: Options): Effect.Effect<PgClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function*() {
    const { default: pg } = yield* Effect.promise(() => import("pg"))
    const config = clientConfig(options)

    const makeClient = (): Client => {
      const client = new pg.Client(config)
      // Without a listener an error of a connection that does nothing would end the process.
      client.on("error", ignore)
      return client
    }
    const shared = {
      types: makeTypes(pg.types.getTypeParser),
      nameOf: makeNames(options.statements ?? 200),
      cancel: (client: ClientBase) => Effect.promise(() => cancelStatement(makeClient(), client as Client))
    }

    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const pool = new pg.Pool({
          ...config,
          max: options.maxConnections ?? 10,
          idleTimeoutMillis: millis(options.idleTimeout ?? "30 seconds")
        })
        pool.on("error", ignore)
        // For the whole life of a client: the pool itself listens only while it is idle.
        pool.on("connect", (client) => void client.on("error", ignore))
        return pool
      }),
      (pool) => Effect.ignoreCause(Effect.timeout(Effect.promise(() => pool.end()), "5 seconds"))
    )
    const connections = new WeakMap<PoolClient, Connection>()
    const connectionOf = (client: PoolClient): Connection => {
      const known = connections.get(client)
      if (known !== undefined) return known
      const connection = makeConnection(client, shared)
      connections.set(client, connection)
      return connection
    }

    /** A client of the pool and how to give it back, also when it comes after the one who asked has gone. */
    const checkout = () => {
      let client: PoolClient | undefined
      let gone = false
      return {
        take: Effect.callback<Connection, SqlError>((resume) => {
          pool.connect((error, taken) => {
            if (taken === undefined) return resume(Effect.fail(pgError(error, "connect")))
            if (gone) return taken.release()
            client = taken
            resume(Effect.succeed(connectionOf(taken)))
          })
        }),
        giveBack: () => {
          gone = true
          // One that is still in a transaction is of no use to the next.
          client?.release(client.getTransactionStatus() !== "I")
        }
      }
    }
    const acquirer = Effect.suspend(() => {
      const { giveBack, take } = checkout()
      return Effect.andThen(Effect.addFinalizer(() => Effect.sync(giveBack)), take)
    })
    const borrower: SqlClient.SqlClient.MakeOptions["borrower"] = (f) =>
      Effect.suspend(() => {
        const { giveBack, take } = checkout()
        return Effect.onExit(Effect.flatMap(take, f), () => Effect.sync(giveBack))
      })

    yield* borrower((connection) => connection.executeUnprepared("SELECT 1", [], undefined))

    const { database, host, port } = makeClient()
    const client = yield* SqlClient.make({
      acquirer,
      borrower,
      driver: "pg",
      compiler: makeCompiler(options.transformQueryNames),
      spanAttributes: [
        ["db.system.name", "postgresql"],
        ["db.namespace", database],
        ["server.address", host],
        ["server.port", port]
      ],
      commit,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      transformRows: options.transformResultNames && Statement.defaultTransforms(options.transformResultNames).array
    })
    return Object.assign(client, { listen: makeListen(makeClient, yield* Effect.scope) })
  })

/** The client as a layer, which closes all its connections. */
export const layer = (options: Options): Layer.Layer<PgClient | SqlClient.SqlClient, SqlError> =>
  Layer.provide(
    Layer.effectContext(
      Effect.map(
        make(options),
        (client) => Context.make(PgClient, client).pipe(Context.add(SqlClient.SqlClient, client))
      )
    ),
    Reactivity.layer
  )

/** Statements for PostgreSQL, from templates. */
export const makeCompiler = (transformNames?: (name: string) => string): Statement.Compiler =>
  Statement.makeCompiler({
    dialect: "pg",
    placeholder: (index) => `$${index}`,
    onIdentifier: (name, withoutTransform) =>
      escape(transformNames === undefined || withoutTransform ? name : transformNames(name)),
    onRecordUpdate: (placeholders, alias, columns, values, returning) => [
      `(VALUES ${placeholders}) AS ${alias}${columns}${returning === undefined ? "" : ` RETURNING ${returning[0]}`}`,
      returning === undefined ? values.flat() : values.flat().concat(returning[1])
    ],
    onCustom: () => ["", []]
  })

/** A transaction in which a statement has failed is answered with `ROLLBACK`, which is no error to the server. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(
    connection.executeRaw("COMMIT", []),
    (result) =>
      (result as QueryResult).command === "COMMIT" ? Effect.void : Effect.fail(pgError(notCommitted(), "commit"))
  )

const notCommitted = () =>
  Object.assign(new Error("the transaction was rolled back, since one of its statements had failed"), { code: "25P02" })

const escape = Statement.defaultEscape("\"")

const clientConfig = (options: Options): ClientConfig => ({
  connectionString: unredacted(options.url),
  host: options.host,
  port: options.port,
  database: options.database,
  user: options.username,
  password: unredacted(options.password),
  ssl: options.ssl,
  application_name: options.applicationName ?? "skein",
  connectionTimeoutMillis: millis(options.connectTimeout ?? "10 seconds"),
  statement_timeout: millis(options.statementTimeout ?? "30 seconds"),
  idle_in_transaction_session_timeout: millis(options.idleInTransactionTimeout ?? "30 seconds"),
  // A server that is gone without a word is noticed, also by a connection that only listens.
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
})

const unredacted = (value: string | Redacted.Redacted<string> | undefined): string | undefined =>
  value === undefined || typeof value === "string" ? value : Redacted.value(value)

/** 0 is "no bound" for `pg` and for the server. */
const millis = (input: Duration.Input): number => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  return Number.isFinite(millis) ? Math.max(1, Math.min(Math.ceil(millis), 2_147_483_647)) : 0
}

const int8 = 20

const makeTypes = (getTypeParser: CustomTypesConfig["getTypeParser"]): Types => {
  const reading = (readInt8: (text: string) => unknown): CustomTypesConfig => ({
    getTypeParser:
      ((oid: number, format: "text") => oid === int8 ? readInt8 : getTypeParser(oid, format)) as CustomTypesConfig[
        "getTypeParser"
      ]
  })
  return {
    bigints: reading(BigInt),
    numbers: reading((text) => {
      const number = Number(text)
      return Number.isSafeInteger(number) ? number : BigInt(text)
    })
  }
}

const ignore = () => {}

/** Never fails: a statement that cannot be cancelled loses its connection, which ends it too. */
const cancelStatement = async (helper: Client, client: Client): Promise<void> => {
  try {
    await helper.connect()
    await helper.query(`SELECT pg_cancel_backend(${(client as Client & { readonly processID: number }).processID})`)
  } catch {
    void client.end().catch(ignore)
  }
  await helper.end().catch(ignore)
}
