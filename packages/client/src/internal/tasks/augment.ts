/**
 * Which calls are augmented with a task, in 2025-11-25 (tasks, tool-level negotiation).
 */
import * as Method from "@skein/protocol/Method"
import * as Duration from "effect/Duration"
import type { ClientError } from "../../ClientError.ts"
import type { Definitions } from "../definitions.ts"
import type { Line } from "../line.ts"
import type { CallToolOptions } from "../requestOptions.ts"

const needed = { side: "server", path: ["tasks", "requests", "tools", "call"] } as const

/** Whether calls may be augmented at all: otherwise "clients MUST NOT attempt to use task augmentation on that server's tools". */
export const mayAugment = ({ capabilities, revision }: Line): boolean =>
  revision === "2025-11-25" && Method.has(capabilities, needed, revision)

/** What a call of a tool is augmented with, if it is. A tool that was not listed is called as it is. */
export const augmentation = (
  definitions: Definitions,
  line: Line,
  name: string,
  { task }: CallToolOptions
): { readonly ttl?: number } | undefined => {
  if (!mayAugment(line)) return undefined
  const support = definitions.taskSupport(name)
  if (support !== "required" && (support !== "optional" || task?.augment !== true)) return undefined
  const ttl = task?.ttl === undefined ? Infinity : Duration.toMillis(task.ttl)
  return Number.isSafeInteger(Math.round(ttl)) ? { ttl: Math.round(ttl) } : {}
}

/**
 * Whether a server refuses a call for want of a task: "servers MUST return a `-32601` (Method not found) error if a client does not
 * attempt to do so", and of a type of request that requires it `-32600`.
 */
export const wantsTask = ({ error }: ClientError): boolean =>
  error?.reason === "MethodNotFound" || error?.reason === "InvalidRequest"
