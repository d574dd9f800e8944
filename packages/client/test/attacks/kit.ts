/** A server that says any text at all, over a connection in memory, and what watches over the host meanwhile. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Receiver, Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"

export type Json = any

/** Says a text, or ends the connection. */
export interface Voice {
  readonly say: (text: string) => void
  readonly hangUp: () => void
  /** What the client has sent, in order. */
  readonly heard: Array<Json>
  /** The messages of one method. */
  readonly of: (method: string) => ReadonlyArray<Json>
  connections: number
}

export interface Hostile extends Voice {
  readonly transport: Transport
}

/** A server whose every word is the script's. */
export const hostile = (script: (message: Json, voice: Voice) => void): Hostile => {
  let receiver: Receiver | undefined
  let open = false
  const heard: Array<Json> = []
  const tell = (what: (receiver: Receiver) => void): void =>
    queueMicrotask(() => {
      if (open && receiver !== undefined) what(receiver)
    })
  const voice: Voice = {
    connections: 0,
    heard,
    of: (method) => heard.filter((message) => message.method === method),
    say: (text) => tell((to) => to.message(JsonRpc.parseText(text))),
    hangUp: () =>
      tell((to) => {
        open = false
        to.end({ _tag: "Ended" })
      })
  }
  const connect = Effect.acquireRelease(
    Effect.sync(() => {
      voice.connections++
      open = true
      return {
        open: (to: Receiver) => {
          receiver = to
        },
        send: (message: JsonRpc.Outbound) => {
          const json = JSON.parse(JsonRpc.encode(message))
          heard.push(json)
          script(json, voice)
          return true
        },
        drained: Effect.void,
        close: Effect.sync(() => {
          open = false
        })
      }
    }),
    ({ close }) => close
  )
  return Object.assign(voice, { transport: { connect } })
}

/** The answer to a request, its result as text. */
export const result = (id: JsonRpc.Id, text: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`

export const capabilities =
  `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

/** Shakes hands in a revision, and leaves the rest to the script. */
export const hands = (
  revision: Revision.Revision,
  rest: (message: Json, voice: Voice) => void = () => {},
  declared = capabilities
) =>
(message: Json, voice: Voice): void => {
  const { id, method } = message
  if (method === "server/discover") {
    return voice.say(
      revision === "2026-07-28"
        ? result(
          id,
          `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":${declared},"ttlMs":0,"cacheScope":"private"}`
        )
        : `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`
    )
  }
  if (method === "initialize") {
    return voice.say(
      result(
        id,
        `{"protocolVersion":"${revision}","capabilities":${declared},"serverInfo":{"name":"hostile","version":"1"}}`
      )
    )
  }
  if (method === "ping") return voice.say(result(id, "{}"))
  return rest(message, voice)
}

/** Nested deeper than the stack. */
const depth = 15_000
export const deep = {
  arrays: "[".repeat(depth) + "]".repeat(depth),
  objects: `${"{\"a\":".repeat(depth)}1${"}".repeat(depth)}`,
  schemas: `${"{\"type\":\"object\",\"properties\":{\"a\":".repeat(depth)}{}${"}}".repeat(depth)}`
}

/** Runs something and gives how long it took, in milliseconds. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [A, number], E, R> =>
  Effect.suspend(() => {
    const begun = performance.now()
    return Effect.map(effect, (value) => [value, performance.now() - begun] as const)
  })

/** Results of `tools/call`, without their braces, that are hostile or not valid. */
export const toolResults: ReadonlyArray<string> = [
  `"content":[],"structuredContent":${deep.arrays}`,
  `"content":[],"structuredContent":${deep.objects},"isError":true`,
  `"content":[{"type":"text","text":"x","_meta":{"x":${deep.arrays}}}]`,
  "\"content\":[{\"type\":\"image\",\"data\":\"!!!\",\"mimeType\":\"\"}]",
  "\"content\":[{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"\\u0000\"}],\"isError\":true",
  "\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":\"!!!\",\"mimeType\":\"x\"}}]",
  "\"content\":[{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"__proto__\"}]",
  "\"content\":[{\"type\":\"evil\"}]",
  "\"content\":[{\"type\":\"__proto__\"}]",
  "\"content\":[],\"structuredContent\":null",
  "\"content\":[],\"structuredContent\":{\"__proto__\":{\"polluted\":1}}"
]
