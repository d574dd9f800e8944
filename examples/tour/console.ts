/**
 * Prints JSON-RPC messages as they pass, for people.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { styleText } from "node:util"

const width = Math.min(process.stdout.columns ?? 110, 140)
const labelled = 25
const indent = 2 + 2 + labelled + 1
const maxLines = 3

const line = (text: string): void => console.log(text)

/** A heading. */
export const title = (text: string): void => line(`\n${styleText(["bold", "cyan"], text)}`)

/** What is said between the messages. */
export const aside = (text: string): void => line(`\n  ${text}`)

/** A few lines of a text, broken behind a comma, a space or a brace where there is one. */
const wrapped = (text: string): ReadonlyArray<string> => {
  const room = Math.max(width - indent, 20)
  const lines: Array<string> = []
  let rest = text
  while (rest.length > room && lines.length < maxLines - 1) {
    const broken = Math.max(...[",", " ", "{"].map((mark) => rest.lastIndexOf(mark, room - 1))) + 1
    const end = broken > room / 2 ? broken : room
    lines.push(rest.slice(0, end).trimEnd())
    rest = rest.slice(end)
  }
  return [...lines, rest.length > room ? `${rest.slice(0, room - 1)}…` : rest]
}

const body = (value: unknown): string => {
  const text = JSON.stringify(value, (key, member: unknown) => key === "_meta" ? undefined : member) ?? ""
  return text === "{}" ? "" : text
}

const print = (arrow: string, label: string, rest: string): void => {
  const [first = "", ...more] = wrapped(rest)
  line(`  ${arrow} ${first === "" ? label : `${label.padEnd(labelled)} ${styleText("dim", first)}`}`)
  for (const text of more) line(`${" ".repeat(indent)}${styleText("dim", text)}`)
}

const out = styleText("blue", "→")
const back = styleText("green", "←")
const wrong = styleText("red", "←")

/** A transport that prints what passes through it. */
export const tap = (transport: Transport): Transport => ({
  connect: Effect.map(transport.connect, (connection): Connection => {
    const methods = new Map<JsonRpc.Id, string>()
    return {
      ...connection,
      drained: connection.drained,
      close: connection.close,
      pause: () => connection.pause?.(),
      resume: () => connection.resume?.(),
      send: (message, about) => {
        if (message._tag === "Request") methods.set(message.id, message.method)
        if (message._tag === "Request" || message._tag === "Notification") {
          print(out, message.method, body(message.params ?? {}))
        }
        return connection.send(message, about)
      },
      open: (receiver) =>
        connection.open({
          end: (end) => receiver.end(end),
          message: (inbound) => {
            if (inbound._tag === "Notification") print(back, inbound.method, body(inbound.params))
            if (inbound._tag === "Success") print(back, methods.get(inbound.id) ?? "", body(inbound.result))
            if (inbound._tag === "Failure") {
              print(wrong, methods.get(inbound.id ?? "") ?? "", `${inbound.error.code} ${inbound.error.message}`)
            }
            receiver.message(inbound)
          }
        })
    }
  })
})
