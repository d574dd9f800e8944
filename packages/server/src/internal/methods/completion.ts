/** `completion/complete`. */

export const install = (): void => {}
