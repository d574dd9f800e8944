/**
 * What a server repeats of what it was sent: whoever reads an error or a log is not to find the credentials there.
 */
import type { Headers } from "@skein/runtime/Connection"
import { ofHost } from "./settings.ts"

// Shorter ones are words that any text may have, and no secrets.
const least = 8

const hidden = "[redacted]"

/** The text without the values of the host's headers, and without the words of them: the token of `Bearer <token>` is one. */
export const redacted = (text: string, sent: Headers | undefined): string => {
  if (sent === undefined || text === "") return text
  const secrets = new Set<string>()
  for (const value of Object.values(ofHost(sent))) {
    for (const part of [value, ...value.split(/\s+/)]) if (part.length >= least) secrets.add(part)
  }
  // A long one first: it may have a shorter one in it.
  return [...secrets].sort((one, other) => other.length - one.length)
    .reduce((kept, secret) => kept.replaceAll(secret, hidden), text)
}
