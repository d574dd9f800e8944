/**
 * The bounds of one skill, which are the same for a server and for a host.
 */

/** The bounds of one skill. */
export interface SkillBounds {
  readonly maxFiles: number
  readonly maxBytes: number
  readonly maxFrontmatterChars: number
}

/** Fills in the defaults. */
export const skillBounds = (
  { maxBytes = 16 * 1024 * 1024, maxFiles = 512, maxFrontmatterChars = 65_536 }: {
    readonly [K in keyof SkillBounds]?: number | undefined
  }
): SkillBounds => ({ maxBytes, maxFiles, maxFrontmatterChars })
