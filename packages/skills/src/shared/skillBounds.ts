/**
 * The bounds of one skill, which are the same for a server and for a host.
 */
import { quote } from "@skein/protocol/Text"

/** The bounds of one skill. */
export interface SkillBounds {
  readonly maxFiles: number
  readonly maxBytes: number
}

/** Fills in the defaults. */
export const skillBounds = (
  { maxBytes = 16 * 1024 * 1024, maxFiles = 512 }: {
    readonly [K in keyof SkillBounds]?: number | undefined
  }
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
