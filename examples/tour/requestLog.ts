/**
 * A request log for people: one line per request with its method and arguments, the client, the revision, the outcome
 * and the duration.
 */
import * as AuditLog from "@skein/server/AuditLog"
import * as Effect from "effect/Effect"
import type { WriteStream } from "node:tty"
import { styleText } from "node:util"

type Outcome = AuditLog.Entry["outcome"]

const colours: Readonly<Record<Outcome, Parameters<typeof styleText>[0]>> = {
  ok: "green",
  tool_error: "yellow",
  input_required: "cyan",
  error: "red",
  cancelled: "gray",
  defect: "red"
}

/**
 * Pads or shortens a text to a column. Control characters become `?`: the text comes from clients, and could otherwise
 * control the terminal.
 */
const column = (text: string, width: number): string => {
  const short = text.length > width ? `${text.slice(0, width - 1)}…` : text
  return short.replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?").padEnd(width)
}

/** One request, as a line of 108 columns. */
const line = (entry: AuditLog.Entry, stream: WriteStream): string => {
  const { arguments: args, client = "unknown", code = "", durationMs, method, outcome, revision, target = "" } = entry
  const paint = (colour: typeof colours[Outcome], text: string): string => styleText(colour, text, { stream })
  return [
    column(`  ${method} ${target} ${JSON.stringify(args) ?? ""}`, 48),
    paint("gray", `${column(client, 18)}  ${revision}`),
    paint(colours[outcome], column(`${outcome.replace("_", " ")} ${code}`, 14)),
    `${durationMs.toFixed(1).padStart(7)} ms`
  ].join("  ")
}

/** A middleware that logs requests to a stream, in colour if the stream is a terminal that supports it. */
export const logRequestsTo = (stream: WriteStream) =>
  AuditLog.layer({ arguments: true, sink: (entry) => Effect.sync(() => void stream.write(`${line(entry, stream)}\n`)) })
