/**
 * The bounds of one skill, which are the same for a server and for a host.
 */
import { quote } from "@skein/protocol/Text"
import * as SkillMessage from "./SkillMessage.ts"

/** The bounds of one skill. A skill that exceeds one of them fails with `LimitExceeded`. */
export interface Limits {
  /**
   * How many files a skill has at most, `SKILL.md` included: 512 by default, which every host supports. Raise it for skills
   * between your own servers and hosts.
   */
  readonly maxFiles?: number | undefined
  /**
   * How many bytes all files of a skill have at most: 16 MiB by default, which every host supports. They are kept in memory
   * by the server, and by a host as they are read. Lower it for hosts with little memory.
   */
  readonly maxBytes?: number | undefined
}

/** The bounds of one skill, with the defaults filled in. */
export type SkillBounds = { readonly [K in keyof Limits]-?: number }

/** Fills in the defaults. */
export const skillBounds = (
  { maxBytes = SkillMessage.maxBytes, maxFiles = SkillMessage.maxFiles }: Limits = {}
): SkillBounds => ({ maxBytes, maxFiles })

/** A bound that a skill exceeds. */
export interface Exceeded {
  readonly limit: "maxFiles" | "maxBytes"
  readonly message: string
}

/** Returns the bound that a skill exceeds with the sizes of its files, or `undefined`. */
export const exceededBound = (
  skill: string,
  sizes: ReadonlyArray<number>,
  { maxBytes, maxFiles }: SkillBounds
): Exceeded | undefined => {
  if (sizes.length > maxFiles) {
    const message = `The skill ${quote(skill)} has ${sizes.length} files, more than maxFiles (${maxFiles})`
    return { limit: "maxFiles", message }
  }
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  return bytes > maxBytes
    ? { limit: "maxBytes", message: `The skill ${quote(skill)} has ${bytes} bytes, more than maxBytes (${maxBytes})` }
    : undefined
}
