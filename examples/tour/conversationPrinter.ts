/**
 * Prints the JSON-RPC messages of a connection for people, with headings and comments between them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { styleText } from "node:util"

const width = Math.min(process.stdout.columns ?? 110, 140)
const labelWidth = 25
const indent = 2 + 2 + labelWidth + 1
const maxLines = 3

const line = (text: string): void => console.log(text)

/** Prints a heading. */
export const heading = (text: string): void => line(`\n${styleText(["bold", "cyan"], text)}`)

/** Prints a comment between the messages. */
export const comment = (text: string): void => line(`\n  ${text}`)

/** Wraps a text to at most three lines, after a comma, a space or a brace if possible. */
const wrap = (text: string): ReadonlyArray<string> => {
  const columns = Math.max(width - indent, 20)
  const lines: Array<string> = []
  let rest = text
  while (rest.length > columns && lines.length < maxLines - 1) {
    const breakAt = Math.max(...[",", " ", "{"].map((mark) => rest.lastIndexOf(mark, columns - 1))) + 1
    const end = breakAt > columns / 2 ? breakAt : columns
    lines.push(rest.slice(0, end).trimEnd())
    rest = rest.slice(end)
  }
  return [...lines, rest.length > columns ? `${rest.slice(0, columns - 1)}…` : rest]
}

const body = (value: unknown): string => {
  const text = JSON.stringify(value, (key, member: unknown) => key === "_meta" ? undefined : member) ?? ""
  return text === "{}" ? "" : text
}

const print = (arrow: string, label: string, rest: string): void => {
  const [first = "", ...more] = wrap(rest)
  line(`  ${arrow} ${first === "" ? label : `${label.padEnd(labelWidth)} ${styleText("dim", first)}`}`)
  for (const text of more) line(`${" ".repeat(indent)}${styleText("dim", text)}`)
}

const sent = styleText("blue", "→")
const received = styleText("green", "←")
const receivedError = styleText("red", "←")

/** Wraps a transport so that it prints its messages. */
export const printConversation = (transport: Transport): Transport => ({
  connect: Effect.map(transport.connect, (connection): Connection => {
    const methods = new Map<JsonRpc.Id, string>()
    return {
      ...connection,
      drained: connection.drained,
      close: connection.close,
      send: (message, about) => {
        if (message._tag === "Request") methods.set(message.id, message.method)
        if (message._tag === "Request" || message._tag === "Notification") {
          print(sent, message.method, body(message.params ?? {}))
        }
        return connection.send(message, about)
      },
      open: (receiver) =>
        connection.open({
          end: (end) => receiver.end(end),
          message: (inbound) => {
            if (inbound._tag === "Notification") print(received, inbound.method, body(inbound.params))
            if (inbound._tag === "Success") print(received, methods.get(inbound.id) ?? "", body(inbound.result))
            if (inbound._tag === "Failure") {
              print(
                receivedError,
                methods.get(inbound.id ?? "") ?? "",
                `${inbound.error.code} ${inbound.error.message}`
              )
            }
            receiver.message(inbound)
          }
        })
    }
  })
})
