/** The statements for sessions of other principals. */
import { expect, it } from "@effect/vitest"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { open, start } from "../kit.ts"

interface Sent {
  readonly text: string
  readonly parameters: ReadonlyArray<unknown>
}

/** A client that records its statements. */
const recording = <Client extends SqlClient.SqlClient>(client: Client, sent: Array<Sent>): Client =>
  new Proxy(client, {
    get: (target, name) => {
      if (name === "withoutTransforms") return () => recording(target.withoutTransforms(), sent)
      if (name !== "unsafe") return Reflect.get(target, name) as unknown
      return (text: string, parameters: ReadonlyArray<unknown> = []) => {
        sent.push({ text, parameters })
        return target.unsafe(text, parameters)
      }
    }
  })

describePostgres("sessions of other principals on PostgreSQL", (postgres) => {
  it.live("are looked up with the one statement that looks up a session which does not exist, and it changes nothing", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const client = Context.get(yield* Layer.build(PgClient.layerListening({ url })), PgClient.PgClient)
      const sent: Array<Sent> = []
      const layer = Layer.provide(
        PostgresFleet.layerClient({ leaseTimeout: "30 seconds" }),
        Layer.succeed(PgClient.PgClient, recording(client, sent))
      )
      const [opener, other] = [yield* start(layer), yield* start(layer)]
      const session = yield* open(opener, "ann")
      const ended = yield* open(opener, "ann")
      yield* opener.fleet.end(ended.id)
      const rows = client`SELECT * FROM skein_fleet_sessions`
      const before = yield* rows
      expect(before).toHaveLength(1)
      for (const { fleet } of [opener, other]) {
        for (const user of ["bob", "", undefined]) {
          const statements = (id: string) =>
            Effect.gen(function*() {
              sent.length = 0
              expect(yield* fleet.find(id, user)).toBeUndefined()
              return sent.filter(({ parameters }) => parameters.includes(id)).map(({ text }) => text)
            })
          const foreign = yield* statements(session.id)
          expect(foreign).toEqual([expect.stringContaining("AND principal || '' = $3")])
          expect(yield* statements(ended.id)).toEqual(foreign)
          expect(yield* statements(fleet.newId())).toEqual(foreign)
        }
      }
      expect(yield* rows).toEqual(before)
    }).pipe(Effect.scoped))
})
