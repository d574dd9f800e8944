/**
 * Processes share the sign-in of an `OAuth` whose refresh tokens work once, and are killed and stopped at random. The
 * server never sees a refresh token twice, unless the process that used it first was killed before it saved the next one.
 *
 * `SKEIN_ROTATION_ROUNDS=200` runs the rounds of a release, and `SKEIN_SEED` repeats the accidents of a run.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { temporary } from "./folder.ts"
import * as Chaos from "./rotation/chaos.ts"
import * as TokenServer from "./rotation/tokenServer.ts"

const seed = Number(process.env["SKEIN_SEED"] ?? Date.now() % 1_000_000)
const rounds = Number(process.env["SKEIN_ROTATION_ROUNDS"] ?? 25)
const timeout = 60_000 + rounds * 6_000

/** A repeatable sequence of numbers from 0 to 1 (mulberry32). */
const seeded = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Args = readonly [kind: "file" | "sql", place: string, leaseTimeout: string]

const rotate = (args: Args, processes: number) =>
  Effect.gen(function*() {
    const random = seeded(seed)
    const server = yield* TokenServer.start(() => 5 + random() * 60)
    const { errors, killed, stops } = yield* Chaos.run({ args, processes, random, rounds, server })
    const { faults, issued, reuses } = server
    const signIns = issued.filter(({ kind }) => kind === "sign-in").length
    // Unused tokens were not saved: the process that was given them died between the answer and the save.
    const unsaved = issued.filter(({ isUsed }) => !isUsed)
    const summary = `seed ${seed}: ${processes} processes, ${rounds} rounds, ${killed.size} kills, ` +
      `${unsaved.length} of them between answer and save, ${stops} stops, ${issued.length - signIns} refreshes, ` +
      `${signIns - 1} sign-ins lost, ${reuses.length} refresh tokens used twice`
    yield* Effect.sync(() => process.stderr.write(`${args[0]}: ${summary}\n`))
    assert.deepEqual(errors, [], summary)
    assert.deepEqual(faults, [], summary)
    assert.deepEqual(unsaved.filter(({ by }) => !killed.has(by)), [], summary)
    // A second use is the loss of a sign-in whose tokens a killed process had and did not save, and each loss has one.
    assert.deepEqual(reuses.filter(({ first }) => !unsaved.includes(first)), [], summary)
    assert.strictEqual(new Set(reuses.map(({ first }) => first)).size, reuses.length, summary)
    assert.isAtMost(signIns - 1, unsaved.length, summary)
    // In each round one process refreshes or signs in; only a kill makes another repeat that.
    assert.isAtLeast(issued.length, rounds, summary)
    assert.isAtMost(issued.length, rounds + 1 + killed.size, summary)
  })

describe("rotation of refresh tokens among processes", () => {
  it.live(
    "FileTokenStore · 8 processes, killed and stopped: uses each refresh token once",
    () =>
      Effect.gen(function*() {
        yield* rotate(["file", yield* temporary, ""], 8)
      }),
    timeout
  )
})

describePostgres("rotation of refresh tokens among machines", (postgres) => {
  it.live(
    "SqlTokenStore · 3 processes, killed and stopped: uses each refresh token once",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => postgres().createDatabase())
        yield* rotate(["sql", url, "6 seconds"], 3)
      }),
    timeout
  )

  it.live(
    "SqlTokenStore · 3 processes, stopped for longer than their leases: keeps the newest tokens",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => postgres().createDatabase())
        const random = seeded(seed)
        const server = yield* TokenServer.start(() => 5 + random() * 60)
        const stopMillis = [1_500, 3_000] as const
        const { errors, stopped, stops } = yield* Chaos.run({
          args: ["sql", url, "1 second"],
          processes: 3,
          random,
          rounds: Math.min(rounds, 50),
          server,
          kills: 0,
          stopMillis
        })
        const signIns = server.issued.filter(({ kind }) => kind === "sign-in").length
        const unsaved = server.issued.filter(({ isUsed }) => !isUsed)
        const summary = `seed ${seed}: ${stops} stops, ${unsaved.length} of them between answer and save, ` +
          `${signIns - 1} sign-ins lost, ${server.reuses.length} refresh tokens used twice`
        yield* Effect.sync(() => process.stderr.write(`sql, long stops: ${summary}\n`))
        assert.deepEqual(errors, [], summary)
        assert.deepEqual(server.faults, [], summary)
        assert.deepEqual(unsaved.filter(({ by }) => !stopped.has(by)), [], summary)
        assert.deepEqual(server.reuses.filter(({ first }) => !unsaved.includes(first)), [], summary)
        assert.isAtMost(signIns - 1, unsaved.length, summary)
      }),
    timeout
  )
})
