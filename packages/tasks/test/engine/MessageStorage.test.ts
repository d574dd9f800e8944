import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { expect, it } from "@effect/vitest"
import type { Encoded } from "effect/cluster/MessageStorage"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as messages from "../../src/internal/engine/messageStorage.ts"
import { messageAddresses } from "../../src/internal/engine/workflow.ts"
import { all, type Backend, each, fresh, pg } from "../store/kit.ts"

/** Tables for this test only, which are empty. */
const open = (backend: Backend) =>
  Effect.gen(function*() {
    const { sql } = yield* fresh(backend)
    const client = Layer.succeed(SqlClient.SqlClient, sql)
    const prefix = "kept"
    yield* Effect.scoped(Layer.build(Layer.provide(SqlMessageStorage.layerMigrations({ prefix }), client)))
    yield* sql.unsafe(`DELETE FROM ${prefix}_messages`)
    yield* sql.unsafe(`DELETE FROM ${prefix}_replies`)
    const storage = yield* Effect.provide(messages.make(prefix), Layer.merge(client, NodeCrypto.layerDigest))
    const left = Effect.gen(function*() {
      const find = (table: string, columns: string) => sql.unsafe<object>(`SELECT ${columns} FROM ${prefix}_${table}`)
      const replies = yield* find("replies", "CAST(request_id AS TEXT) AS request, payload")
      const kept = yield* find("messages", "CAST(id AS TEXT) AS id, CAST(processed AS INT) AS processed ")
      return { replies: [...replies], messages: [...kept] }
    })
    return { sql, storage, left }
  })

const [workflow, clock] = messageAddresses("execution") as [Address, Address]
type Address = ReturnType<typeof messageAddresses>[number]

/** The id of a message, beyond the safe integers of JavaScript. */
const id = (number: number): string => String(249_571_305_053_896_704n + BigInt(number))

const request = (storage: Encoded, requestId: string, { entityId, entityType, shardId }: Address) =>
  storage.saveEnvelope({
    envelope: {
      _tag: "Request",
      requestId,
      address: { entityId, entityType, shardId: { group: shardId.group, id: shardId.id } },
      tag: "run",
      payload: {},
      headers: {}
    },
    primaryKey: null,
    deliverAt: null
  })

const reply = (storage: Encoded, requestId: string) =>
  storage.saveReply({
    _tag: "WithExit",
    id: String(BigInt(requestId) + 1000n),
    requestId,
    exit: { _tag: "Success", value: null }
  })

const replied = (request: string) => ({ request, payload: `{"_tag":"Success","value":null}` })

each(all, (backend) => {
  it.effect("a message that is cleared before its reply leaves no reply, and another message keeps its own", () =>
    Effect.gen(function*() {
      const { left, storage } = yield* open(backend)
      yield* request(storage, id(1), workflow)
      yield* request(storage, id(2), clock)
      yield* storage.clearAddress(clock)
      yield* reply(storage, id(2))
      expect(yield* left).toEqual({ replies: [], messages: [{ id: id(1), processed: 0 }] })
      yield* reply(storage, id(1))
      expect(yield* left).toEqual({ replies: [replied(id(1))], messages: [{ id: id(1), processed: 1 }] })
    }))

  it.effect("deletes the replies of cleared messages, and no others", () =>
    Effect.gen(function*() {
      const { left, storage } = yield* open(backend)
      const [other] = messageAddresses("another") as [Address]
      for (const [number, address] of [workflow, workflow, clock, other].entries()) {
        yield* request(storage, id(number), address)
        yield* reply(storage, id(number))
      }
      yield* storage.clearAddress(workflow)
      expect((yield* left).replies).toEqual([replied(id(2)), replied(id(3))])
      yield* storage.clearAddress(workflow)
      yield* storage.clearAddress(clock)
      expect(yield* left).toEqual({ replies: [replied(id(3))], messages: [{ id: id(3), processed: 1 }] })
    }))

  const order = ["reply", "clear"] as const
  for (const first of order) {
    it.effect(`a message is cleared while its reply is written, the ${first} first: nothing is left`, () =>
      Effect.gen(function*() {
        const { left, sql, storage } = yield* open(backend)
        yield* request(storage, id(1), clock)
        const acts = { reply: reply(storage, id(1)), clear: storage.clearAddress(clock) }
        const done = Latch.makeUnsafe()
        const commit = Latch.makeUnsafe()
        const one = yield* acts[first].pipe(
          Effect.andThen(done.open),
          Effect.andThen(commit.await),
          sql.withTransaction,
          Effect.forkChild
        )
        yield* done.await
        const other = yield* Effect.forkChild(acts[first === "reply" ? "clear" : "reply"])
        if (backend === pg) {
          const blocked =
            sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
          yield* Effect.repeat(blocked, { until: (rows) => rows.length > 0 })
        } else yield* Effect.yieldNow
        yield* commit.open
        yield* Fiber.join(one)
        yield* Fiber.join(other)
        expect(yield* left).toEqual({ replies: [], messages: [] })
      }))
  }
})
