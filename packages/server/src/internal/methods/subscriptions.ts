/** `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen`. */

export const install = (): void => {}
