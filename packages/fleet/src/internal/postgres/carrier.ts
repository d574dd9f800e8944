/**
 * The messages between nodes, as notifications of PostgreSQL.
 *
 * A notification has less than 8,000 bytes. A longer message is a row, and its notification has the id of the row.
 */
import * as RandomId from "@skein/runtime/RandomId"
import type { FleetError } from "@skein/server/Fleet"
import type { Client } from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Outgoing } from "../node/backend.ts"
import { fleetError, now, prepare } from "./database.ts"

const maxNotificationBytes = 7_900

/** How long a row is kept. A node that has not read it by then reads the records again. */
export const payloadMillis = 60_000

/** A message that can be sent: its text, or the id of the row that has the text. */
export interface Content {
  readonly text: string
  readonly row: string | null
}

/** Decides how a text is sent. */
export const contentOf = (text: string): Content => ({
  text,
  row: Buffer.byteLength(text) > maxNotificationBytes ? RandomId.make(22) : null
})

const insertRows = (from: string) =>
  `INSERT INTO skein_fleet_payloads (id, text, expires_at)
   SELECT row_id, text, ${now} + ${payloadMillis} FROM ${from} WHERE row_id IS NOT NULL`

/** The end of a statement that sends `text`, a parameter, to the nodes in the rows of `receivers`, and returns these. */
export const notifyReceivers = (channel: number, text: number, row: number): string =>
  `, message AS (SELECT CAST($${text} AS TEXT) AS text, CAST($${row} AS TEXT) AS row_id),
   stored AS (${insertRows("message")})
   SELECT node, pg_notify(CAST($${channel} AS TEXT) || '_' || node, COALESCE('@' || row_id, text))
   FROM receivers, message`

/** Sends and receives messages of one node. */
export const makeCarrier = (client: Client, channel: string, node: number) => {
  const sql = client.withoutTransforms()
  const own = `${channel}_${node}`
  const notifyAll = prepare(
    sql,
    `WITH message AS (
       SELECT n, m ->> 'to' AS receiver, m ->> 'text' AS text, m ->> 'row' AS row_id
       FROM json_array_elements(CAST($2 AS JSON)) WITH ORDINALITY AS messages (m, n)
     ), stored AS (${insertRows("message")})
     SELECT pg_notify(CAST($1 AS TEXT) || COALESCE('_' || receiver, ''), COALESCE('@' || row_id, text))
     FROM message ORDER BY n`
  )
  const selectRow = prepare(sql, "SELECT text FROM skein_fleet_payloads WHERE id = $1")

  const send = (messages: ReadonlyArray<Outgoing>): Effect.Effect<void, FleetError> => {
    const contents = messages.map(({ text, to }) => ({ ...contentOf(text), to }))
    return Effect.asVoid(notifyAll(channel, JSON.stringify(contents)))
  }

  const receive = (
    onText: (text: string) => void,
    onGap: () => void
  ): Effect.Effect<void, FleetError, Scope.Scope> =>
    Effect.gen(function*() {
      // Undefined is a gap. A row is read before the next text is handled.
      const inbox = yield* Queue.unbounded<string | undefined>()
      const read = (id: string) =>
        Effect.matchEffect(selectRow(id), {
          onFailure: (error) =>
            Effect.andThen(Effect.logWarning("failed to read a message", error), Effect.sync(onGap)),
          onSuccess: ([row]) => Effect.sync(() => row === undefined ? onGap() : onText(row["text"] as string))
        })
      const handle = Effect.flatMap(Queue.take(inbox), (text) => {
        if (text === undefined) return Effect.sync(onGap)
        return text.startsWith("@") ? read(text.slice(1)) : Effect.sync(() => onText(text))
      })
      yield* Effect.forkScoped(Effect.forever(handle))
      const add = (text: string | undefined): void => void Queue.offerUnsafe(inbox, text)
      yield* Effect.mapError(client.listen(channel, add, () => add(undefined)), fleetError)
      yield* Effect.mapError(client.listen(own, add, () => {}), fleetError)
    })

  return { send, receive }
}
