/**
 * The names of the tools and prompts of a server behind a gateway: a prefix, `_`, and the name that the server has.
 */

import { cut } from "@skein/protocol/Text"

/** The longest name that hosts and models accept everywhere (2025-11-25, "Tool Names": up to 128; model providers: 64). */
const maxChars = 64

/** A text with `_` in place of the characters that names of tools do not have (2025-11-25, "Tool Names"). */
export const valid = (text: string): string => text.replaceAll(/[^A-Za-z0-9_.-]/g, "_")

/** Eight hexadecimal digits that tell texts apart (FNV-1a). They are part of names, so they must stay the same in each version. */
export const digest = (text: string): string => {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, "0")
}

/** The name in the gateway. One that is too long, or that has other characters, ends with a digest of the whole name. */
export const nameOf = (prefix: string, own: string): string => {
  const whole = prefix === "" ? own : `${prefix}_${own}`
  const name = valid(whole)
  if (name === whole && name.length <= maxChars) return name
  return `${cut(name, maxChars - 9)}_${digest(whole)}`
}

/** The prefix of a server, which no other server has: see `isFree`. */
export const prefixOf = (server: string, isFree: (prefix: string) => boolean): string => {
  const prefix = valid(server)
  return isFree(prefix) ? prefix : `${prefix}_${digest(server)}`
}
