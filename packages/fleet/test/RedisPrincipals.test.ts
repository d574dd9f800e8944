/** The commands for sessions of other principals. */
import { expect, it } from "@effect/vitest"
import * as RedisFleet from "@skein/fleet/RedisFleet"
import * as RandomId from "@skein/runtime/RandomId"
import * as Effect from "effect/Effect"
import { connect } from "node:net"
import { open, start, until } from "./kit.ts"
import { describeRedis, type RedisServer } from "./startRedis.ts"

/** Records all commands of Redis, and those of its scripts. */
const monitor = ({ command, port }: RedisServer) =>
  Effect.gen(function*() {
    let text = ""
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        connect(port, "127.0.0.1").setEncoding("utf8").on("data", (chunk: string) => void (text += chunk))
      ),
      (socket) => Effect.sync(() => void socket.destroy())
    ).pipe(Effect.tap((socket) => Effect.sync(() => void socket.write("MONITOR\r\n"))))
    yield* until("Redis sends its commands", () => text.includes("+OK"))
    /** The commands with a word that an effect causes, without that word. */
    return <E>(word: string, effect: Effect.Effect<unknown, E>) =>
      Effect.gen(function*() {
        text = ""
        yield* effect
        const mark = RandomId.make(8)
        yield* Effect.promise(() => command("ECHO", mark))
        yield* until("all commands have arrived", () => text.includes(mark))
        return text.split("\r\n").filter((line) => line.includes(word))
          .map((line) => line.replaceAll(word, "id").replace(/^[^"]*/, ""))
      })
  })

describeRedis("sessions of other principals on Redis", (redis) => {
  it.live("are looked up with the commands that look up a session which does not exist", () =>
    Effect.gen(function*() {
      const layer = RedisFleet.layer({ url: redis().url, namespace: RandomId.make(8), leaseTimeout: "30 seconds" })
      const [opener, other] = [yield* start(layer), yield* start(layer)]
      const session = yield* open(opener, "ann")
      const ended = yield* open(opener, "ann")
      yield* opener.fleet.end(ended.id)
      const commands = yield* monitor(redis())
      for (const { fleet } of [opener, other]) {
        // The script is sent the first time.
        yield* commands(session.id, fleet.find(session.id, "bob"))
        for (const user of ["bob", "", undefined]) {
          const lookup = (id: string) =>
            commands(id, Effect.map(fleet.find(id, user), (found) => expect(found).toBeUndefined()))
          const foreign = yield* lookup(session.id)
          expect(foreign.filter((line) => line.startsWith("\"EVALSHA\""))).toHaveLength(1)
          expect(foreign.length).toBeGreaterThan(1)
          expect(yield* lookup(ended.id)).toEqual(foreign)
          expect(yield* lookup(fleet.newId())).toEqual(foreign)
        }
      }
    }).pipe(Effect.scoped))
})
