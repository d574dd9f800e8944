/**
 * The member `gateway` of an entry in a configuration: how the gateway offers the server.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** A duration as text, such as `30 seconds`. */
const Time = Schema.String.check(
  Schema.makeFilter((text) =>
    Option.isSome(Duration.fromInput(text as Duration.Input)) || "must be a duration, such as \"30 seconds\""
  )
).annotate({ description: "A duration: \"500 millis\", \"30 seconds\", \"5 minutes\"" })

const Names = Schema.Array(Schema.String).annotate({
  description: "Names that the server has. * stands for any characters: \"read_*\""
})

const optional = Schema.optional

/** The members, with the descriptions that an editor shows. */
export const Members = Schema.Struct({
  prefix: optional(Schema.String.annotate({
    description: "The prefix of the names and URIs of this server. Default: its name. \"\" leaves them as they are"
  })),
  tools: optional(
    Schema.Struct({
      only: optional(Names),
      except: optional(Names),
      change: optional(
        Schema.Record(
          Schema.String,
          Schema.Struct({
            name: optional(Schema.String),
            title: optional(Schema.String),
            description: optional(Schema.String)
          })
        ).annotate({ description: "Other names, titles and descriptions of tools, by the name that the server has" })
      )
    }).annotate({ description: "Which tools are offered, and how. Default: all, as they are" })
  ),
  resources: optional(Schema.Boolean.annotate({ description: "Whether resources are offered. Default: true" })),
  prompts: optional(Schema.Boolean.annotate({ description: "Whether prompts are offered. Default: true" })),
  connections: optional(
    Schema.Literals(["auto", "shared", "session", "principal", "call"]).annotate({
      description:
        "Whose connection calls use. Default: auto, which is shared until the server asks a caller over stdio"
    })
  ),
  maxConnections: optional(Positive.annotate({
    description: "How many connections of single callers may be open. Default: 100"
  })),
  idleTimeout: optional(Time),
  timeout: optional(Time),
  startTimeout: optional(Time),
  heartbeat: optional(
    Schema.Union([Schema.Boolean, Schema.Struct({ interval: Time, timeout: Time })]).annotate({
      description:
        "How often the server is asked whether it still answers. Default: every 2 seconds over stdio, and a server " +
        "that does not answer for 3 seconds is started again. false for a server that blocks while it works"
    })
  ),
  required: optional(Schema.Boolean.annotate({
    description: "Whether the gateway is ready only while this server is connected. Default: false"
  }))
})

export type Members = typeof Members.Type

/** The name of the member in an entry. */
export const member = "gateway"

const decode = Schema.decodeUnknownResult(Members, { onExcessProperty: "error" })

/** Reads the member of an entry. Fails with the first problem. */
export const membersOf = (raw: unknown): Result.Result<Members, string> => {
  const value = isObject(raw) ? raw[member] : undefined
  return value === undefined || value === null
    ? Result.succeed({})
    : Result.mapError(decode(value), ({ message }) => message.replaceAll(/\s*\n\s*/g, " "))
}

/** The pattern of a name in which `*` stands for any characters. */
export const patternOf = (name: string): string | RegExp =>
  name.includes("*")
    ? new RegExp(`^${name.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "s")
    : name
