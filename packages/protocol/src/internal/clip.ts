/** What a peer sent, as far as a message quotes it: what is quoted is not to be larger than what it is about. */
export const clip = (text: string, max = 128): string => text.length <= max ? text : `${text.slice(0, max)}…`
