// sim_cards.h: the devices that the simulator knows, as the commands name and list them.
#ifndef CLI_SIM_CARDS_H
#define CLI_SIM_CARDS_H

#include <stdbool.h>
#include <stddef.h>

enum sim_card_maker { SIM_CARD_UNKNOWN, SIM_CARD_CUDA, SIM_CARD_AMD };

// Whose device the key of `length` bytes names.
enum sim_card_maker sim_card_maker_of(const char *key, size_t length);
// "no card is called 'h10'; did you mean 'h100'? ...": one line.
void sim_card_say_unknown(const char *key, size_t length, char *wrong, size_t capacity);
// The words for the letters of vram_sim_model_estimated(): "clocks, bus". Empty for a key with none.
void sim_card_estimates(const char *key, char *text, size_t capacity);
// The keys of the CUDA cards in one paragraph on standard error.
void sim_cards_say_known(void);
// All of them on standard output, at most 80 columns wide.
void sim_cards_print(void);

#endif
