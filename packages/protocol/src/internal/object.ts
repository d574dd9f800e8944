import type { JsonObject } from "../JsonRpc.ts"

/** Whether the value is a JSON object: neither `null` nor an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
