/**
 * Lists the skills of a client, of several clients by name, or of a pool, and names them.
 */
import * as SkillMessage from "../shared/SkillMessage.ts"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import { ClientError, Timeout } from "@skein/client/ClientError"
import type { ReadyOptions } from "@skein/client/ClientPool"
import type { PoolError } from "@skein/client/PoolError"
import * as RemoteSkill from "./RemoteSkill.ts"

/** The members of a pool that a toolkit of skills uses. */
export interface SkillPool {
  readonly ready: (
    options: ReadyOptions
  ) => Effect.Effect<ReadonlyArray<{ readonly server: string; readonly tools: unknown }>>
  readonly client: (name: string) => Effect.Effect<RemoteSkill.SkillClient, ClientError | PoolError>
}

/** A single client, several clients by name, or a pool. */
export type SkillSource = RemoteSkill.SkillClient | SkillPool | Readonly<Record<string, RemoteSkill.SkillClient>>

/** The skills of one server, or the error of listing them. */
export interface ListedSkills {
  /** The name that the host gives the server; `undefined` for a single client. */
  readonly server: string | undefined
  /** The client at the time of a call. */
  readonly client: Effect.Effect<RemoteSkill.SkillClient, ClientError | PoolError>
  readonly skills: Result.Result<ReadonlyArray<SkillMessage.Skill>, ClientError | PoolError>
}

/** How long each server may take to list its skills. */
const listTimeout = "30 seconds"

// A record may have a server with the name of any member, so the type of the member decides: a client is not a function.
const isClient = (source: SkillSource): source is RemoteSkill.SkillClient =>
  "requestAll" in source && typeof source.requestAll === "function"
const isPool = (source: SkillSource): source is SkillPool => "client" in source && typeof source.client === "function"

const list = (
  server: string | undefined,
  client: Effect.Effect<RemoteSkill.SkillClient, ClientError | PoolError>
): Effect.Effect<ListedSkills> => {
  const who = server === undefined ? "The server" : `The server ${server}`
  const message = `${who} did not list its skills within ${listTimeout}`
  const listed = Effect.flatMap(client, (client) =>
    RemoteSkill.list(client).pipe(
      Effect.catchReason("ClientError", "Unsupported", () => Effect.succeed([])),
      Effect.timeoutOrElse({
        duration: listTimeout,
        orElse: () => Effect.fail(new ClientError({ reason: new Timeout({ message }), method: undefined }))
      })
    ))
  return Effect.map(Effect.result(listed), (skills) => ({ server, client, skills }))
}

/** Lists the skills of all servers in parallel. A server without the extension has none. */
export const listAll = (
  source: SkillSource,
  servers: ((server: string) => boolean) | undefined,
  readyTimeout: Duration.Input
): Effect.Effect<ReadonlyArray<ListedSkills>> => {
  if (isClient(source)) return Effect.map(list(undefined, Effect.succeed(source)), (listed) => [listed])
  if (isPool(source)) {
    return Effect.flatMap(source.ready({ servers, readyTimeout }), (all) =>
      Effect.forEach(
        all.filter(({ tools }) => tools !== undefined),
        ({ server }) => list(server, source.client(server)),
        { concurrency: "unbounded" }
      ))
  }
  const chosen = Object.entries(source).filter(([server]) => servers?.(server) ?? true)
  return Effect.forEach(chosen, ([server, client]) => list(server, Effect.succeed(client)), {
    concurrency: "unbounded"
  })
}

/** A skill and its server. */
export interface Origin {
  readonly server: string | undefined
  readonly entry: SkillMessage.Skill
}

const within = (server: string | undefined, name: string): string => server === undefined ? name : `${server}:${name}`

/**
 * Gives each skill a unique id: `<server>:<name>`, or the name alone for a single client. Where several skills of a server
 * have one name, each of them has its path in the place of the name, and its URI where the paths are equal too. An id
 * never names a skill of another server: "Hosts MUST resolve skill names within a per-origin namespace" (SEP-2640).
 */
export const idsOf = (all: ReadonlyArray<Origin>): ReadonlyArray<string> => {
  const forms: ReadonlyArray<(entry: SkillMessage.Skill) => string> = [
    ({ frontmatter }) => frontmatter.name,
    ({ uri }) => SkillMessage.pathOf(uri) ?? uri,
    ({ uri }) => uri
  ]
  const ids = all.map(() => "")
  const taken = new Set<string>()
  let left = all.map((origin, at) => ({ origin, at }))
  for (const form of forms) {
    const groups = Map.groupBy(left, ({ origin: { entry, server } }) => JSON.stringify([server ?? null, form(entry)]))
    const isLast = form === forms.at(-1)
    left = []
    for (const group of groups.values()) {
      const [{ at, origin: { entry, server } }] = group as [typeof group[number]]
      const id = within(server, form(entry))
      if (!taken.has(id) && (group.length === 1 || isLast)) {
        ids[at] = id
        taken.add(id)
      } else left.push(...group)
    }
  }
  return ids
}
