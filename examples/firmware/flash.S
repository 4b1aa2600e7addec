@ Puts two files into flash: the model or context binary, and the input of the executor.
    .section .model, "a"
    .balign 64
    .global flash_file, flash_file_end, flash_input, flash_input_end
flash_file:
    .incbin FLASH_FILE
flash_file_end:
    .balign 8
flash_input:
    .incbin INPUT_FILE
flash_input_end:
