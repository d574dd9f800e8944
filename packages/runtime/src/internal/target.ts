/**
 * What a request is about, for people.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** The tool, prompt or resource that a request names, where it names one. */
export const targetOf = (params: JsonRpc.JsonObject | undefined): string | undefined =>
  text(params?.["name"]) ?? text(params?.["uri"])
