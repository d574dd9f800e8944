/**
 * The capabilities of clients and servers.
 *
 * `extensions` is part of the specification since 2026-07-28. It is written in every revision: peers negotiate
 * extensions in older revisions too, and a peer that does not support the member ignores it. A malformed one is ignored
 * when reading.
 */
import * as Schema from "effect/Schema"
import { fallback, field, only, since, until } from "./Annotate.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { AnyObject } from "./Primitive.ts"
import type { Revision } from "./Revision.ts"

/** PHP writes an empty object as `[]`, and some peers write `true`: both declare a capability, without settings. */
const declaresOnly = (value: unknown): boolean => value === true || (Array.isArray(value) && value.length === 0)

const settings = <S extends Schema.Top & { readonly Type: object }>(schema: S): S =>
  fallback(schema, (value) => declaresOnly(value) ? {} as S["Type"] : undefined)

type Extensions = { readonly [extension: string]: JsonObject }

// A malformed extension does not hide the others.
const readExtensions = (value: unknown): Extensions | undefined =>
  !isObject(value)
    ? undefined
    : Object.values(value).every(isObject)
    ? value as Extensions
    : Object.fromEntries(
      Object.entries(value).flatMap(([name, one]) =>
        isObject(one) ? [[name, one]] : declaresOnly(one) ? [[name, {}]] : []
      )
    )

const flag = Schema.optionalKey(settings(AnyObject))
const listChanged = { listChanged: Schema.optionalKey(Schema.Boolean) }
const open = {
  experimental: Schema.optionalKey(Schema.Record(Schema.String, settings(AnyObject))),
  extensions: field(Schema.optionalKey(Schema.Record(Schema.String, AnyObject)), { lift: readExtensions })
}
const taskFlags = { list: flag, cancel: flag }

/** A client's support for tasks, in 2025-11-25. */
export class ClientTasksCapability extends Schema.Opaque<ClientTasksCapability>()(Schema.Struct({
  ...taskFlags,
  requests: Schema.optionalKey(Schema.Struct({
    sampling: Schema.optionalKey(settings(Schema.Struct({ createMessage: flag }))),
    elicitation: Schema.optionalKey(settings(Schema.Struct({ create: flag })))
  }))
})) {}

/** A server's support for tasks, in 2025-11-25. */
export class ServerTasksCapability extends Schema.Opaque<ServerTasksCapability>()(Schema.Struct({
  ...taskFlags,
  requests: Schema.optionalKey(Schema.Struct({
    tools: Schema.optionalKey(settings(Schema.Struct({ call: flag })))
  }))
})) {}

/** The elicitation modes of a client. Without members it means forms. */
export class ElicitationCapability extends Schema.Opaque<ElicitationCapability>()(Schema.Struct({
  form: since("2025-11-25", flag),
  url: since("2025-11-25", flag)
})) {}

// In 2025-06-18 an empty `elicitation` means forms, so a client that supports URLs only must not declare it there.
const lowerElicitation = (value: ElicitationCapability, revision: Revision): unknown =>
  revision < "2025-11-25" && value?.url !== undefined && value.form === undefined ? undefined : value

/** The capabilities of a client. */
export class ClientCapabilities extends Schema.Opaque<ClientCapabilities>()(Schema.Struct({
  ...open,
  roots: Schema.optionalKey(Schema.Struct({ listChanged: until("2026-07-28", Schema.optionalKey(Schema.Boolean)) })),
  sampling: Schema.optionalKey(Schema.Struct({
    context: since("2025-11-25", flag),
    tools: since("2025-11-25", flag)
  })),
  elicitation: since("2025-06-18", Schema.optionalKey(ElicitationCapability), { lower: lowerElicitation }),
  tasks: only("2025-11-25", Schema.optionalKey(ClientTasksCapability))
})) {}

/**
 * Whether received capabilities declare a member, by its path. They may be any JSON, since nothing in them is checked:
 * `null` and `false` count as not declared, as does a member of a value that is not an object.
 *
 * @example
 * Capabilities.declares({ sampling: { tools: {} } }, "sampling", "tools") // true
 */
export const declares = (capabilities: unknown, ...path: ReadonlyArray<string>): boolean => {
  let at = capabilities
  for (const key of path) {
    if (!isObject(at) || !Object.hasOwn(at, key)) return false
    at = at[key]
  }
  return at !== undefined && at !== null && at !== false
}

/** Whether a client supports an elicitation mode. A client that declares no mode supports forms. */
export const elicits = (capabilities: unknown, mode: "form" | "url"): boolean =>
  declares(capabilities, "elicitation", mode) ||
  (mode === "form" && declares(capabilities, "elicitation") && !declares(capabilities, "elicitation", "url"))

/** The capabilities of a server. */
export class ServerCapabilities extends Schema.Opaque<ServerCapabilities>()(Schema.Struct({
  ...open,
  logging: flag,
  completions: since("2025-03-26", flag),
  prompts: Schema.optionalKey(settings(Schema.Struct(listChanged))),
  resources: Schema.optionalKey(
    settings(Schema.Struct({ subscribe: Schema.optionalKey(Schema.Boolean), ...listChanged }))
  ),
  tools: Schema.optionalKey(settings(Schema.Struct(listChanged))),
  tasks: only("2025-11-25", Schema.optionalKey(settings(ServerTasksCapability)))
})) {}
