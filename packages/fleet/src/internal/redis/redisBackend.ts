/**
 * The backend of a fleet on Redis or Valkey.
 *
 * Each message for a node has a number. The client of Redis subscribes again without a sign after its connection was lost;
 * a number that is missing shows that messages are lost. Each renewal of the lease sends a message, so that this is noticed
 * also if no other follows.
 */
import * as Backoff from "@skein/runtime/Backoff"
import { FleetError, maxNode, type SessionRecord } from "@skein/server/Fleet"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import { randomBytes, randomInt } from "node:crypto"
import { type Backend, digestOf, principalOf } from "../node/backend.ts"
import * as scripts from "./scripts.ts"

/** How many sessions one script touches or removes. */
const maxSessionsPerScript = 200

// The start of a node fails if its first message does not arrive in this many milliseconds.
const startTimeout = 10_000

const retries: Backoff.Backoff = { initialDelay: 100, maxDelay: 5_000 }

const fleetError = (cause: Redis.RedisError): FleetError =>
  new FleetError({
    message: `Redis failed: ${cause.cause instanceof Error ? cause.cause.message : "unknown error"}`,
    cause
  })

/** The part of a record that never changes. */
type Fixed = Pick<SessionRecord, "principalId" | "revision" | "info" | "capabilities">

const toRecord = (id: string, list: ReadonlyArray<string>): SessionRecord => {
  const members: Record<string, string> = {}
  const subscriptions: Array<readonly [number, string]> = []
  for (let at = 0; at < list.length; at += 2) {
    const [name, value] = [list[at]!, list[at + 1]!]
    if (name.startsWith("u:")) subscriptions.push([Number(value), JSON.parse(name.slice(2)) as string])
    else members[name] = value
  }
  // JSON has no members that are undefined.
  const fixed = JSON.parse(members["r"]!) as Partial<Fixed> & Pick<Fixed, "revision" | "capabilities">
  return {
    principalId: undefined,
    info: undefined,
    ...fixed,
    id,
    isInitialized: members["i"] === "1",
    logLevel: members["g"] === "" ? undefined : members["g"],
    subscriptions: subscriptions.toSorted(([a], [b]) => a - b).map(([, uri]) => uri),
    listensAt: Number(members["l"])
  }
}

/** A URI in Redis, where texts are UTF-8: it may have lone surrogates. Empty: none. */
const textOf = (uri: string | undefined): string => uri === undefined ? "" : JSON.stringify(uri)

/** The prefix of all keys of a fleet. It has the hash tag that puts them into one slot of a cluster. */
export const prefixOf = (namespace: string): string => `skein:{fleet:${encodeURIComponent(namespace)}}`

/** Joins the fleet of a namespace. */
export const makeBackend = (
  redis: Redis.Redis["Service"],
  namespace: string,
  leaseMillis: number
): Effect.Effect<Backend, FleetError> =>
  Effect.gen(function*() {
    const prefix = prefixOf(namespace)
    const run = <Params extends ReadonlyArray<string | number>, Result>(
      script: Redis.Script<{ params: [string, ...Params]; result: Result }>
    ) => {
      const evaluate = redis.eval(script)
      return (...params: Params): Effect.Effect<Result, FleetError> =>
        Effect.mapError(evaluate(prefix, ...params), fleetError)
    }
    const [node, key] = yield* run(scripts.join)(
      randomBytes(32).toString("base64url"),
      leaseMillis,
      randomInt(maxNode >> 1),
      maxNode
    )
    const [create, find, change, end, touch, send, renew, leave, clean, ping] = [
      run(scripts.create),
      run(scripts.find),
      run(scripts.change),
      run(scripts.end),
      run(scripts.touch),
      run(scripts.send),
      run(scripts.renew),
      run(scripts.leave),
      run(scripts.clean),
      run(scripts.ping)
    ]
    let hasWarned = false

    const receive: Backend["receive"] = (onText, onGap) =>
      Effect.gen(function*() {
        const started = yield* Deferred.make<void>()
        let last: number | undefined
        const onMessage = ({ message }: Redis.RedisMessage): void => {
          const space = message.indexOf(" ")
          const number = Number(message.slice(0, space))
          const isNext = last === undefined || number === last + 1
          last = number
          if (!isNext) onGap()
          if (space < message.length - 1) onText(message.slice(space + 1))
          Deferred.doneUnsafe(started, Effect.void)
        }
        const listen = Effect.scoped(Effect.gen(function*() {
          const queue = yield* redis.subscribe(`${prefix}:to:${node}`)
          // Its number shows whether messages were lost.
          yield* Effect.forkScoped(Effect.ignore(ping(node)))
          // A connection that receives nothing for as long as a lease is dead.
          const next = Effect.timeoutOrElse(Queue.take(queue), {
            duration: leaseMillis,
            orElse: () => Effect.fail(new Redis.RedisError({ cause: new Error("no message has arrived") }))
          })
          return yield* Effect.forever(Effect.map(next, onMessage))
        }))
        yield* Effect.forkScoped(resubscribe(listen))
        yield* Effect.timeoutOrElse(Deferred.await(started), {
          duration: startTimeout,
          orElse: () =>
            Effect.fail(new FleetError({ message: `no message of Redis has arrived within ${startTimeout} ms` }))
        })
      })

    return {
      node,
      key,
      create: (record, { idleTimeout, maxSessionsPerPrincipal }, client) => {
        const { capabilities, id, info, logLevel, principalId, revision } = record
        const fixed: Fixed = { principalId, revision, info, capabilities }
        const most = Math.min(maxSessionsPerPrincipal, Number.MAX_SAFE_INTEGER)
        const idle = Math.ceil(Math.min(idleTimeout, 2 ** 40))
        return Effect.map(
          create(
            node,
            id,
            principalOf(principalId),
            digestOf(client),
            JSON.stringify(fixed),
            logLevel ?? "",
            idle,
            most
          ),
          (created) => created === 1
        )
      },
      find: (id, principalId) =>
        Effect.map(
          find(node, id, principalOf(principalId)),
          (members) => members.length === 0 ? undefined : toRecord(id, members)
        ),
      change: (id, { isInitialized, listensAt, logLevel, subscribe, unsubscribe }, text, isEchoed) =>
        Effect.map(
          change(
            node,
            id,
            text,
            isInitialized === true ? 1 : 0,
            logLevel ?? "",
            listensAt === undefined ? "" : `${listensAt}`,
            textOf(subscribe),
            textOf(unsubscribe),
            isEchoed ? 1 : 0
          ),
          (nodes) => nodes.map(Number)
        ),
      end: (id, text) => Effect.map(end(node, id, text), (nodes) => nodes.map(Number)),
      touch: (ids) =>
        Effect.forEach(
          Array.from(
            { length: Math.ceil(ids.length / maxSessionsPerScript) },
            (_, n) => ids.slice(n * maxSessionsPerScript, (n + 1) * maxSessionsPerScript)
          ),
          (some) => touch(...some),
          { discard: true }
        ),
      send: (messages) =>
        Effect.asVoid(send(...messages.flatMap(({ text, to }) => [to === undefined ? "" : `${to}`, text]))),
      receive,
      renew: Effect.flatMap(renew(node, leaseMillis, key), ([isLost, current, nodes]) => {
        const members = { nodes: [node, ...nodes.map(Number).filter((other) => other !== node)], wasLost: isLost === 1 }
        if (current === key || hasWarned) return Effect.succeed(members)
        hasWarned = true
        return Effect.as(
          Effect.logWarning("Redis has lost its data, and later nodes have another key: restart this node"),
          members
        )
      }),
      leave: Effect.asVoid(leave(node)),
      clean: (maxSessions) =>
        Effect.gen(function*() {
          for (;;) {
            const [expired, ended] = yield* clean(maxSessions ?? -1, maxSessionsPerScript)
            if (expired < maxSessionsPerScript || ended.length > 0) return ended
          }
        })
    }
  })

/** Subscribes again when the subscription fails. */
const resubscribe = (
  listen: Effect.Effect<never, Redis.RedisError>,
  attempt = 1
): Effect.Effect<never> =>
  Effect.suspend(() => {
    const since = performance.now()
    return Effect.catch(listen, (error) => {
      const next = performance.now() - since > retries.maxDelay ? 1 : attempt
      return Effect.logWarning("the subscription to Redis failed: subscribing again", error).pipe(
        Effect.andThen(Effect.sleep(Backoff.delay(retries, next))),
        Effect.andThen(Effect.suspend(() => resubscribe(listen, next + 1)))
      )
    })
  })
